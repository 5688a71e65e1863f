"""The web application: every address of the page, and what it does with the desk."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from interbench_tasks.errors import InterbenchError, PeopleError, RefusedError
from interbench_tasks.people.desk import Content, Desk, Standing, checked_annotator
from interbench_tasks.people.forms import Form, form_of
from interbench_tasks.people_page.door import (
    COOKIE_S,
    HEADERS,
    Door,
    cookie_name,
    csrf_token,
    is_csrf_token,
    new_secret,
    same_origin,
)
from interbench_tasks.people_page.showing import (
    NOTES,
    PER_PAGE,
    fields_shown,
    note_shown,
    page,
    parts_shown,
    queue_rows,
    run_note,
    why_not_yours,
)

MOST_BYTES = 1_000_000
"""Of one request; a text of some hundred pages."""
PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
STATIC: Mapping[str, str] = {"page.css": "text/css", "page.js": "text/javascript"}
_FIELD = "field."


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request of somebody who was let in."""

    secret: str
    annotator: str
    """'' before they said who they are."""
    note: str
    form: Mapping[str, str]
    """What was sent; empty for a GET."""
    query: Mapping[str, str]
    path: Mapping[str, str]


class Page:
    """What stands behind the addresses.

    Args:
        desk: what people work on.
        forms: kind -> form of the items on it.
        door: who may come in.
        port: of the server, for the cookie's name.
        hide_answer: whether right answers are not shown.
    """

    def __init__(
        self, desk: Desk, forms: Mapping[str, Form], door: Door, *, port: int = 0, hide_answer: bool = False
    ) -> None:
        self._desk = desk
        self._forms = forms
        self._door = door
        self._cookie = cookie_name(port)
        self._hide_answer = hide_answer
        self._static = {name: (files("interbench_tasks.people_page") / "static" / name).read_bytes() for name in STATIC}

    def app(self) -> Starlette:
        """The application."""
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/enter", self._enter, methods=get),
            Route("/static/{name}", self._file, methods=get),
            Route("/favicon.ico", _no_icon, methods=get),
            Route("/", self._inside(self.home), methods=get),
            Route("/name", self._inside(self.name), methods=post),
            Route("/next", self._inside(self.next, named=True), methods=get),
            Route("/queue", self._inside(self.queue, named=True), methods=get),
            Route("/status", self._inside(self.status, named=True), methods=get),
            Route("/picture/{digest}", self._inside(self.picture), methods=get),
            Route("/item/{item}", self._inside(self.item, named=True), methods=get),
            Route("/item/{item}", self._inside(self.answer, named=True), methods=post),
            Route("/item/{item}/draft", self._inside(self.draft, named=True), methods=post),
            Route("/item/{item}/skip", self._inside(self.skip, named=True), methods=post),
            Route("/undo", self._inside(self.undo, named=True), methods=post),
            Route("/leave", self._inside(self.leave), methods=post),
            Route("/invite", self._inside(self.invite, named=True), methods=post),
        ]
        return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})

    # --- the door -------------------------------------------------------------------------------------------------

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return _message("There is no such page.", status=404)
        return _safe(Response(self._static[name], media_type=STATIC[name], headers={"Cache-Control": "no-cache"}))

    async def _enter(self, request: Request) -> Response:
        """Exchange a link's token for a cookie."""
        if not self._door.answers_to(request.headers.get("host", "")):
            return _wrong_host(request)
        secret = request.cookies.get(self._cookie, "")
        if secret and await run_in_threadpool(self._desk.sessions.annotator, secret) is not None:
            return _safe(RedirectResponse("/", status_code=303))  # the same browser opens its link again
        if request.method == "HEAD":  # somebody's preview of the link, which must not use it up
            return _safe(Response())
        token = request.query_params.get("token", "")
        if not self._door.lets_in(token):
            return _message(_closed(used=self._door.was_used(token)), status=403)
        secret = new_secret()
        await run_in_threadpool(self._desk.sessions.begin, secret)
        # A redirect would come without the new cookie where another site led here: so our own page goes on.
        response = _safe(HTMLResponse(page("enter.html")))
        response.set_cookie(self._cookie, secret, max_age=COOKIE_S, httponly=True, samesite="strict", path="/")
        return response

    def _inside(
        self, handler: Callable[[Visit], Response], *, named: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """The address of a page for those who were let in, and said who they are where that is needed."""

        async def handle(request: Request) -> Response:
            if not self._door.answers_to(request.headers.get("host", "")):
                return _wrong_host(request)
            secret = request.cookies.get(self._cookie, "")
            annotator = await run_in_threadpool(self._desk.sessions.annotator, secret) if secret else None
            if annotator is None:
                return _message(_closed(used=False), status=403)
            form: Mapping[str, str] = {}
            if request.method == "POST":
                sent = await _sent(request)
                if sent is None:
                    return _message(f"That is too long: more than {MOST_BYTES:,} bytes.", status=413)
                own = same_origin(request.headers.get("origin"), request.headers.get("host", ""))
                if not own or not is_csrf_token(sent.get("csrf", ""), secret):
                    told = "This form is not from this page, or from before you came in. Go back, reload and try again."
                    return _message(told, status=403, text=_words(sent))
                form = sent
                if form.get("opened_by", annotator) != annotator:
                    return _message(_somebody_else(form["opened_by"], annotator), status=409, text=_words(form))
            if named and not annotator:
                return _safe(RedirectResponse("/", status_code=303))
            visit = Visit(
                secret=secret,
                annotator=annotator,
                note=NOTES.get(request.query_params.get("note", ""), ""),
                form=form,
                query=dict(request.query_params),
                path=request.path_params,
            )
            return _safe(await run_in_threadpool(_told, handler, visit))

        return handle

    # --- pages ----------------------------------------------------------------------------------------------------

    def home(self, visit: Visit) -> Response:
        """Who are you, or what is next."""
        if visit.annotator:
            return RedirectResponse("/next", status_code=303)
        return HTMLResponse(page("name.html", csrf=csrf_token(visit.secret), problem="", name=""))

    def name(self, visit: Visit) -> Response:
        """Say who you are, once."""
        given = visit.form.get("annotator", "")
        try:
            annotator = checked_annotator(given)
        except RefusedError as error:
            shown = page("name.html", csrf=csrf_token(visit.secret), problem=str(error), name=given)
            return HTMLResponse(shown, status_code=422)
        self._desk.sessions.name(visit.secret, annotator)
        return RedirectResponse("/next?note=named", status_code=303)

    def leave(self, visit: Visit) -> Response:
        """Let somebody else sit down at this browser."""
        self._desk.sessions.name(visit.secret, "")
        return RedirectResponse("/", status_code=303)

    def next(self, visit: Visit) -> Response:
        """The next item, or that there is none."""
        item = self._desk.next_for(visit.annotator)
        if item is not None:
            note = visit.query.get("note", "")
            return RedirectResponse(f"/item/{item}?note={note}" if note in NOTES else f"/item/{item}", status_code=303)
        return HTMLResponse(page("idle.html", **self._around(visit)))

    def queue(self, visit: Visit) -> Response:
        """The list of items that wait."""
        text = visit.query.get("page", "1")
        number = max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else 1
        standings = self._desk.queue(visit.annotator, first=(number - 1) * PER_PAGE, most=PER_PAGE)
        around = self._around(visit)
        n_pages = max(1, -(-self._desk.counts(visit.annotator).waiting // PER_PAGE))
        rows = queue_rows(standings, self._forms)
        return HTMLResponse(page("queue.html", rows=rows, number=number, n_pages=n_pages, **around))

    def item(self, visit: Visit) -> Response:
        """An item, claimed where it is free."""
        standing = self._desk.claim(visit.path["item"], visit.annotator)
        return self._item_page(visit, standing, standing.draft.content if standing.draft else {})

    def _item_page(
        self,
        visit: Visit,
        standing: Standing,
        content: Content,
        *,
        problems: tuple[str, ...] = (),
        asked: bool = False,
        seconds: float | None = None,
        status: int = 200,
    ) -> Response:
        item = standing.item
        form = form_of(item.kind, self._forms)
        drafted = standing.draft.seconds if standing.draft else 0.0
        shown = page(
            "item.html",
            item=item,
            title=form.title(item.payload),
            parts=parts_shown(form, item.payload, hide_answer=self._hide_answer),
            fields=fields_shown(form, item.payload, content),
            actions=form.actions(item.payload),
            editable=standing.state in ("free", "yours"),
            why_not=why_not_yours(standing),
            mine=fields_shown(form, item.payload, standing.mine.content) if standing.mine else [],
            problems=problems,
            asked=asked,
            seconds=drafted if seconds is None else seconds,
            shown_at=time.time(),
            item_run_note=run_note(self._desk.counts(visit.annotator), standing),
            **self._around(visit),
        )
        return HTMLResponse(shown, status_code=status)

    def _around(self, visit: Visit) -> dict[str, object]:
        """What every page shows around its own."""
        counts = self._desk.counts(visit.annotator)
        last = self._desk.last_submission(visit.annotator)
        return {
            "annotator": visit.annotator,
            "csrf": csrf_token(visit.secret),
            "note": note_shown(visit.note, counts),
            "counts": counts,
            "run_note": run_note(counts),
            "undoable": last is not None,
        }

    def picture(self, visit: Visit) -> Response:
        """The bytes of a picture."""
        found = self._desk.picture(visit.path["digest"])
        if found is None or found.mime not in PICTURE_TYPES:
            return _message("There is no such picture on this desk.", status=404)
        return Response(found.data, media_type=found.mime)

    def status(self, visit: Visit) -> Response:
        """What a page that is open asks from time to time."""
        counts = self._desk.counts(visit.annotator)
        return JSONResponse(
            {"waiting": counts.waiting, "to_do": counts.to_do, "for_you": counts.for_you, "runs": counts.runs}
        )

    def invite(self, visit: Visit) -> Response:
        """A link for one more browser."""
        return HTMLResponse(page("invite.html", path=f"/enter?token={self._door.new_token()}", **self._around(visit)))

    # --- what people do -------------------------------------------------------------------------------------------

    def answer(self, visit: Visit) -> Response:
        """Hand an answer in."""
        item = self._desk.item(visit.path["item"])
        form = form_of(item.kind, self._forms)
        content, seconds = _content(visit.form), _seconds(visit.form)
        problems = form.problems(item.payload, content)
        known = self._hide_answer or visit.form.get("asked") == "yes"
        doubts = () if problems or known else form.doubts(item.payload, content)
        if problems or doubts:
            self._desk.save_draft(item.id, visit.annotator, content, seconds)
            standing = self._desk.standing(item.id, visit.annotator)
            told = (*problems, *doubts)
            return self._item_page(
                visit, standing, content, problems=told, asked=bool(doubts), seconds=seconds, status=422
            )
        try:
            self._desk.submit(item.id, visit.annotator, content, seconds)
        except RefusedError:
            standing = self._desk.standing(item.id, visit.annotator)
            return self._item_page(visit, standing, content, status=409)
        return RedirectResponse("/next?note=sent", status_code=303)

    def draft(self, visit: Visit) -> Response:
        """Keep what was written so far."""
        state = self._desk.save_draft(visit.path["item"], visit.annotator, _content(visit.form), _seconds(visit.form))
        return JSONResponse({"saved": True, "state": state})

    def skip(self, visit: Visit) -> Response:
        """Give an item back."""
        item = self._desk.item(visit.path["item"])
        content = _content(visit.form)
        if any(str(value).strip() for name, value in content.items() if name != "action"):
            self._desk.save_draft(item.id, visit.annotator, content, _seconds(visit.form))
        self._desk.skip(item.id, visit.annotator)
        return RedirectResponse("/next?note=skipped", status_code=303)

    def undo(self, visit: Visit) -> Response:
        """Take the last answer back."""
        try:
            undone = self._desk.undo(visit.annotator)
        except RefusedError as error:
            return _message(str(error), status=409)
        return RedirectResponse(f"/item/{undone.item}?note=undone", status_code=303)


# --- answers that are no page of their own --------------------------------------------------------------------------


def _told(handler: Callable[[Visit], Response], visit: Visit) -> Response:
    """What the handler says, or why it cannot; the visitor's words are shown, so that they can be copied."""
    try:
        return handler(visit)
    except RefusedError as error:
        return _message(f"{error}.", status=404 if error.reason == "unknown" else 409, text=_words(visit.form))
    except PeopleError as error:
        return _message(f"It could not be stored. {error}", status=507, text=_words(visit.form))
    except InterbenchError as error:
        return _message(str(error), status=500, text=_words(visit.form))


def _message(told: str, *, status: int, text: str = "") -> Response:
    """A page that says something. Args: text = what the visitor wrote, shown so that it can be copied."""
    return _safe(HTMLResponse(page("message.html", message=told, text=text), status_code=status))


def _safe(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _not_found(request: Request, error: Exception) -> Response:
    return _message("There is no such page.", status=404)


async def _no_icon(request: Request) -> Response:
    return _safe(Response(status_code=204))


def _wrong_host(request: Request) -> Response:
    return _message(
        "This page does not answer to that address. Use the link that `interbench serve` printed; for another name of "
        "this machine start it with --allow-host NAME.",
        status=421,
    )


def _closed(*, used: bool) -> str:
    what = "This link was used already, by another browser." if used else "You need a link to come in."
    return (
        f"{what} `interbench serve` prints one when it starts; somebody who is in can make another one with "
        "`Invite`. What is on the desk is not touched by this."
    )


def _somebody_else(before: str, now: str) -> str:
    return (
        f"{before} opened this item, but this browser is {now or 'nobody'} now. Nothing was handed in. Change the id "
        f"back to {before}, or open the item again."
    )


async def _sent(request: Request) -> dict[str, str] | None:
    """The fields of a form; None where it is too long, or did not come to its end."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return None
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200)
    except (ValueError, ClientDisconnect):
        return None
    return dict(pairs)


def _content(form: Mapping[str, str]) -> dict[str, str]:
    """What was filled in, as the desk keeps it."""
    fields = {
        name.removeprefix(_FIELD): value.replace("\r\n", "\n")
        for name, value in form.items()
        if name.startswith(_FIELD)
    }
    return {**fields, "action": form.get("action", "")}


def _words(form: Mapping[str, str]) -> str:
    return "\n\n".join(value for name, value in form.items() if name.startswith(_FIELD) and value.strip())


def _seconds(form: Mapping[str, str]) -> float:
    """Time spent: what the page counted while it was looked at, else since it was shown; at most a day."""
    try:
        counted = float(form.get("seconds", ""))
        if form.get("counted") != "1":
            counted += max(0.0, time.time() - float(form.get("shown_at", "")))
    except ValueError:
        return 0.0
    return min(max(counted, 0.0), 86_400.0) if math.isfinite(counted) else 0.0
