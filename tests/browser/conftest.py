"""Chromium for the tests of this folder, and a page that is served while a test runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interbench_tasks.people.desk import Desk
from interbench_tasks.people.forms import own_forms
from interbench_tasks.people_page.app import Page
from interbench_tasks.people_page.door import Door, allowed_hosts
from interbench_tasks.people_page.serving import Address, free_address
from tests.conftest import chromium_path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The installed browser, without a window.

    It ends with its file: while one is there, its event loop is the thread's, and no other test could run one.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox: Chromium has none for root, and these pages are ours.
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Served:
    """A page on 127.0.0.1, in a thread; `stop` and `start` as if its process were killed and begun anew."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.desk = Desk(path)
        self.options = options
        self.port = 0
        self.start()

    def start(self) -> None:
        import uvicorn

        address: Address = free_address("127.0.0.1", self.port)
        self.port, self.url = address.port, address.url
        self.door = Door(hosts=allowed_hosts("127.0.0.1"))
        app = Page(self.desk, own_forms(), self.door, port=self.port, **self.options).app()
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [address.socket]}, daemon=True)
        self.thread.start()
        self.socket = address.socket

    def stop(self) -> None:
        self.server.force_exit = self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()

    @property
    def link(self) -> str:
        return f"{self.url}/enter?token={self.door.new_token()}"


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    one = Served(tmp_path / "people.sqlite")
    yield one
    one.stop()
    one.desk.close()


@pytest.fixture
def visitor(chromium) -> Iterator[Callable[..., Any]]:
    """`visitor()`: a tab of a browser of its own; a script error or a refused piece of a page fails the test."""
    contexts, said = [], []

    def come(**options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(15_000)
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("console", lambda message: said.append(message.text) if _is_complaint(message) else None)
        return tab

    yield come
    for context in contexts:
        context.close()
    assert said == []


def _is_complaint(message: Any) -> bool:
    """Not that a server was away or answered with an error, which some tests want."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")
