"""Starts the page: finds a free port, makes the links, and serves until it is stopped."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from interbench_tasks.errors import PeopleError
from interbench_tasks.people_page.door import LOCAL_HOSTS

PORT = 8420
PORTS_TRIED = 20
EVERYWHERE = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the page is served; the socket is bound already, so that nobody else gets the port."""

    host: str
    port: int
    socket: socket.socket

    @property
    def url(self) -> str:
        """As a browser on this machine (or, where it is served everywhere, elsewhere) opens it."""
        name = socket.gethostname() if self.host in EVERYWHERE else self.host
        return f"http://[{name}]:{self.port}" if ":" in name else f"http://{name}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can open it."""
        return self.host in LOCAL_HOSTS

    def names(self, further: Iterable[str] = ()) -> tuple[str, ...]:
        """The names that the page answers to, beside those of this machine alone."""
        own = (socket.gethostname(), socket.getfqdn(), *_own_addresses()) if self.host in EVERYWHERE else (self.host,)
        return (*own, *further)


def free_address(host: str, port: int | None) -> Address:
    """A bound address. Args: port = None: the usual one, or the next that is free.

    Raises: PeopleError where it cannot be had.
    """
    tried = range(PORT, PORT + PORTS_TRIED) if port is None else [port]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in tried:
        # Named as TCP: only then asyncio sends small answers at once, instead of 40 ms later.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, one))
            bound.listen(128)  # who opens the link before the server runs waits a moment, and is not turned away
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE and one != tried[-1]:
                continue
            what = "it is in use" if error.errno == errno.EADDRINUSE else str(error)
            raise PeopleError(
                f"the page cannot be served at {host}, port {one}: {what}; name another --port"
            ) from error
        return Address(host=host, port=bound.getsockname()[1], socket=bound)
    raise PeopleError(f"no port between {tried[0]} and {tried[-1]} is free; name one with --port")


def serve(app: object, address: Address) -> None:
    """Serve until Ctrl-C or SIGTERM; whoever writes meanwhile loses nothing, what they wrote is on the desk."""
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # an ASGI application, for which uvicorn has a longer name
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[address.socket])


def _own_addresses() -> list[str]:
    try:
        return sorted({str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)})
    except OSError:
        return []
