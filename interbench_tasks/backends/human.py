"""People who give feedback: each call becomes an item on a desk, and waits there until somebody has answered it.

Nobody is asked to be quick: a waiting call holds up no batch, no slot and no other episode. What a person writes is
kept in the ledger like any reply, and on the desk, so a run that is stopped and started again asks nobody twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interbench_tasks.errors import BackendError, PeopleError, PictureError, near_miss
from interbench_tasks.people.desk import Desk, NewItem, StoredPicture, Submission, item_id
from interbench_tasks.people.desk_file import desk_path
from interbench_tasks.records import HUMAN, MARKED_RIGHT, Message, PictureRef, Reply, ReplyRun, Usage

if TYPE_CHECKING:
    from interbench_tasks.hookspecs import Call

_LOG = logging.getLogger(__name__)
GRACE_S = 10.0
POLL_S = 1.0
BEAT_S = 5.0

_OPTIONS = ("grace_s", "hide_answer", "poll_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Laid:
    """An item on its way to the desk."""

    item: NewItem
    pictures: Mapping[str, StoredPicture]
    done: asyncio.Future[None]


class HumanBackend:
    """People in the role provider; `person` lets the engine go on while they think.

    Args:
        model: name of the study, any; a run with another name asks people again, also where they answered before.
        grace_s: seconds in which a person can still undo what they handed in, before the run takes it.
        hide_answer: whether people do not see the right answer.
        poll_s: seconds between two looks at the desk.

    Raises: BackendError where an option is unknown or out of range.
    """

    person = True
    plays = ("provider",)
    """The roles that people may play during a run; stored runs are judged by `interbench serve RUN --judge`."""

    def __init__(
        self,
        model: str = "",
        *,
        grace_s: float = GRACE_S,
        hide_answer: bool = False,
        poll_s: float = POLL_S,
        **options: object,
    ) -> None:
        for name in options:
            raise BackendError(
                f"the human backend has no option '{name}'{near_miss(name, _OPTIONS)}\n  allowed: {', '.join(_OPTIONS)}"
            )
        _check_seconds(grace_s=grace_s, poll_s=poll_s)
        if not isinstance(hide_answer, bool):
            raise BackendError(f"human backend: hide_answer = {hide_answer!r} must be true or false")
        self.name = f"{HUMAN}:{model}" if model else HUMAN
        self.fingerprint = f"{self.name} hide_answer={hide_answer}"
        self._grace_s = float(grace_s)
        self._poll_s = max(0.01, float(poll_s))
        self._hide_answer = hide_answer
        self._desk: Desk | None = None
        self._task = self._run = ""
        self._waiting: dict[str, set[asyncio.Future[Submission]]] = {}
        self._polling: asyncio.Task[None] | None = None
        self._to_lay: list[_Laid] = []
        self._laying: asyncio.Task[None] | None = None

    def begin_run(self, *, place: Path | None, task: str, run: str) -> None:
        """A run begins; opens the desk. Args: place = file or folder of the desk, None where the run has none.

        Raises: BackendError where there is no place for it; PeopleError where it cannot be opened or written.
        """
        if place is None:
            raise BackendError(f"{self.name}: people answer during a run of lmms-eval only; this command asks nobody")
        self._desk = Desk(desk_path(place))
        self._task, self._run = task, run
        self._desk.begin_run(run, task)

    async def reply(self, call: Call) -> Reply:
        """What a person says, however long that takes; `latency_s` is the time that they spent on it.

        The text is empty, and `finish_reason` is `marked_right`, where they say that the reply is right.
        """
        if call.purpose != "feedback":
            return self._failed(_refusal(call))
        if self._desk is None:
            return self._failed(f"{self.name}: no run has begun, so there is no desk to lay the question on")
        desk, item = self._desk, self._item(call)
        started_at, loop = time.time(), asyncio.get_running_loop()
        future: asyncio.Future[Submission] = loop.create_future()
        self._waiting.setdefault(item.id, set()).add(future)
        try:
            pictures = await asyncio.to_thread(_stored, _pictures(call))  # encoding one can take a second
            await self._lay(desk, _Laid(item=item, pictures=pictures, done=loop.create_future()))
            self._begin_to_poll()
            self._hand_over(await asyncio.to_thread(desk.take, [item.id], grace_s=self._grace_s))
            said = await future
        except (PeopleError, PictureError) as error:
            return self._failed(str(error))
        finally:
            waiters = self._waiting.get(item.id, set())
            waiters.discard(future)
            if not waiters:
                self._waiting.pop(item.id, None)
        return _reply_from(said, started_at)

    async def close(self) -> None:
        """Tell people that the run waits no longer; what lies on the desk stays there."""
        for task in (self._polling, self._laying):
            if task is not None:
                task.cancel()
        if self._desk is not None:
            await asyncio.to_thread(self._end, self._desk)

    def _end(self, desk: Desk) -> None:
        desk.end_run(self._run)
        desk.close()

    def _item(self, call: Call) -> NewItem:
        payload = payload_from(call, task=self._task, hide_answer=self._hide_answer)
        said = [f"{message.role}:{message.text}" for message in call.messages]
        shown = [picture.digest for picture in _pictures(call)]
        episode = call.episode
        place = (self.fingerprint, self._task, episode.id, str(episode.repeat), call.branch, str(call.round))
        return NewItem(id=item_id([*place, *said, *shown]), kind="feedback", payload=payload, run=self._run)

    async def _lay(self, desk: Desk, laid: _Laid) -> None:
        """Lay an item on the desk, together with whatever else comes while the disk is busy.

        Raises: PeopleError where it cannot be written.
        """
        self._to_lay.append(laid)
        if self._laying is None or self._laying.done():
            self._laying = asyncio.get_running_loop().create_task(self._lay_all(desk))
        await laid.done

    async def _lay_all(self, desk: Desk) -> None:
        while self._to_lay:
            batch, self._to_lay = self._to_lay, []
            pictures = {digest: picture for laid in batch for digest, picture in laid.pictures.items()}
            problem: PeopleError | None = None
            try:
                await asyncio.to_thread(desk.put, [laid.item for laid in batch], pictures)
            except PeopleError as error:
                problem = error
            for laid in batch:
                if laid.done.done():
                    continue  # its call was given up
                if problem is None:
                    laid.done.set_result(None)
                else:
                    laid.done.set_exception(problem)

    # --- looking at the desk --------------------------------------------------------------------------------------

    def _begin_to_poll(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        """One look for all that wait, so that thousands of waiting calls cost no more than one."""
        assert self._desk is not None
        beat_at, told = 0.0, False
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                if time.monotonic() - beat_at >= BEAT_S:
                    beat_at = time.monotonic()
                    await asyncio.to_thread(self._desk.beat, self._run)
                ready = await asyncio.to_thread(self._desk.ready, grace_s=self._grace_s)
                mine = [item for item in ready if item in self._waiting]
                if mine:
                    self._hand_over(await asyncio.to_thread(self._desk.take, mine, grace_s=self._grace_s))
            except PeopleError as error:  # waiting costs nothing: look again, the disk may have space by then
                if not told:
                    _LOG.warning("%s", error)
                told = True

    def _hand_over(self, taken: dict[str, tuple[Submission, ...]]) -> None:
        for item, answers in taken.items():
            for future in self._waiting.get(item, ()):
                if not future.done():
                    future.set_result(answers[0])

    def _failed(self, why: str) -> Reply:
        return Reply(text="", status="error", error=why, usage=Usage(calls=1), model=self.name)


def payload_from(call: Call, *, task: str, hide_answer: bool = False) -> dict[str, Any]:
    """What the feedback form shows of a call: the question, all rounds so far, and what is asked of the person."""
    episode = call.episode
    said = [message for message in call.messages if message.role != "system"]
    rounds: list[dict[str, str]] = []
    told = ""
    for message in said:
        if message.role == "assistant":
            rounds.append({"told": told if rounds else "", "reply": message.text})
        else:
            told = message.text
    asked = said[-1].text if said and said[-1].role == "user" else ""
    return {
        "task": task,
        "episode": episode.id,
        "repeat": episode.repeat,
        "category": episode.category,
        "arm": call.branch,
        "level": call.round,
        "instruction": asked,
        "question": episode.raw_question or episode.question.text,
        "options": dict(episode.options),
        "target": "" if hide_answer else episode.target,
        "hide_target": hide_answer,
        "pictures": [picture.digest for picture in _pictures(call)],
        "rounds": rounds,
    }


def _pictures(call: Call) -> list[PictureRef]:
    """The question's pictures, then those that only the messages have; each once."""
    messages: Sequence[Message] = (call.episode.question, *call.messages)
    return list({picture.digest: picture for message in messages for picture in message.pictures}.values())


def _stored(pictures: Sequence[PictureRef]) -> dict[str, StoredPicture]:
    """The pictures that came with their bytes."""
    found = {}
    for picture in pictures:
        data = getattr(picture, "data", None)  # only `images.Picture`, which extends the reference, has it
        if isinstance(data, bytes):
            found[picture.digest] = StoredPicture(mime=picture.mime, data=data)
    return found


def _reply_from(said: Submission, started_at: float) -> Reply:
    marked = said.content.get("action") == MARKED_RIGHT
    return Reply(
        text="" if marked else str(said.content.get("text", "")),
        finish_reason=MARKED_RIGHT if marked else "stop",
        usage=Usage(calls=1),
        model=f"{HUMAN}:{said.annotator}",
        run=ReplyRun(latency_s=said.seconds, started_at=started_at),
    )


def _refusal(call: Call) -> str:
    if call.purpose == "solve":
        return (
            "people do not solve the questions first, so with the provider `human` all wrong first answers are to be "
            "tried: metadata.interbench.test_on: all_wrong"
        )
    return f"people give feedback in the role provider; they were asked for '{call.purpose}' in the role {call.role}"


def _check_seconds(**numbers: object) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 3600:
            raise BackendError(f"human backend: {name} = {number!r} must be a number of seconds, from 0 to 3600")
