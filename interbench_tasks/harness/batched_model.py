"""A harness model as the engine's batches see it: conversations go in as documents, replies come out."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, unwrap_generation_output

from interbench_tasks.errors import BackendError, PictureError
from interbench_tasks.hookspecs import Call
from interbench_tasks.images import Picture
from interbench_tasks.records import UNKNOWN_USAGE, GenerationSettings, Message, PictureRef, Reply, Usage
from interbench_tasks.redaction import redact

TASK = "__interbench__"
SPLIT = "turns"
FAILURE_TEXTS = ("[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED]")
"""What the harness returns in place of a reply."""
NO_CONTENT = 'Error: can only concatenate str (not "NoneType") to str'
"""What async_openai returns as the model's words where the server sent none (`content: null`)."""
API_BATCH = 256
"""Backends without a meaningful batch size get all that waits, up to this many."""
CURSOR_UP = "\x1b[A"


class HarnessModel:
    """Fulfils `engine.BatchedModel` with any backend of the harness, chat or simple.

    Backends apply the first request's `doc_to_messages` to the whole batch and look documents up in `lm.task_dict`,
    so each conversation is a document of its own, and one shared function makes a fresh copy of it.
    """

    def __init__(self, lm: Any, *, name: str, fingerprint: str, batch_size: int) -> None:  # noqa: ANN401 - untyped
        self.name = name
        self.fingerprint = fingerprint
        self.batch_size = batch_size
        self._lm = lm
        self._ids = itertools.count()
        self._docs: dict[int, Call] = {}
        lm.task_dict[TASK] = {SPLIT: self._docs}

    def generate(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """One reply per call, in order. What the backend raises is raised: the engine halves the batch."""
        replies: dict[int, Reply] = {}
        wanted: list[int] = []
        for call in calls:
            call_id = next(self._ids)
            wanted.append(call_id)
            broken = _broken_picture(call)
            if broken is not None:
                replies[call_id] = Reply(text="", status="error", error=broken)
            else:
                self._docs[call_id] = call
        asked = [call_id for call_id in wanted if call_id not in replies]
        try:
            replies |= dict(zip(asked, self._ask(asked), strict=True))
        finally:
            for call_id in asked:
                self._docs.pop(call_id, None)
        return [replies[call_id] for call_id in wanted]

    def _ask(self, call_ids: Sequence[int]) -> list[Reply]:
        if not call_ids:
            return []
        alike: dict[str, list[int]] = {}
        for call_id in call_ids:  # backends apply the first request's settings to the whole batch
            alike.setdefault(repr(self._docs[call_id].settings), []).append(call_id)
        if len(alike) > 1:
            found = {one: reply for own in alike.values() for one, reply in zip(own, self._ask(own), strict=True)}
            return [found[call_id] for call_id in call_ids]
        requests = [self._instance(call_id) for call_id in call_ids]
        with quiet_bars():
            outputs = self._lm.generate_until(requests)
        if not isinstance(outputs, Sequence) or isinstance(outputs, str) or len(outputs) != len(requests):
            what = f"{len(outputs)} replies" if isinstance(outputs, list | tuple) else f"a {type(outputs).__name__}"
            raise BackendError(f"{self.name}: generate_until gave {what} to {len(requests)} requests")
        return [reply_from(output, self.name) for output in outputs]

    def _instance(self, call_id: int) -> Instance:
        call = self._docs[call_id]
        context, generation = text_of(call.messages), generation_kwargs(call.settings)
        if getattr(self._lm, "is_simple", True):
            arguments: tuple[Any, ...] = (context, generation, visuals_of, call_id, TASK, SPLIT)
        else:
            arguments = (context, messages_of, generation, call_id, TASK, SPLIT)
        metadata = {"task": TASK, "doc_id": call_id, "repeats": 1, "split": SPLIT}
        return Instance(request_type="generate_until", arguments=arguments, idx=0, metadata=metadata)


def messages_of(call: Call) -> list[dict[str, Any]]:
    """The conversation in the harness's chat form; a fresh copy, because backends change what they get."""
    return [
        {"role": message.role, "content": [_chat_part(part) for part in message.content]} for message in call.messages
    ]


def _chat_part(part: str | PictureRef) -> dict[str, Any]:
    if isinstance(part, Picture):
        return {"type": "image", "url": part.pil()}
    return {"type": "text", "text": part}


def visuals_of(call: Call) -> list[Any]:
    """All pictures of the conversation in order, for simple backends."""
    return [part.pil() for message in call.messages for part in message.content if isinstance(part, Picture)]


def text_of(messages: Sequence[Message]) -> str:
    """The conversation as one text, for simple backends, which take no history: speakers are named once there is one.

    A simple backend shows pictures before the text; `<image n>` marks the place of one that stands within it.

    >>> text_of([Message(role="user", content=("Why?",))])
    'Why?'
    """
    texts, n_pictures = [], 0
    for message in messages:
        texts.append(_marked_text(message, n_pictures))
        n_pictures += len(message.pictures)
    if len(messages) == 1:
        return texts[0]
    names = {"system": "System", "user": "User", "assistant": "Assistant"}
    lines = [f"{names[message.role]}: {text}" for message, text in zip(messages, texts, strict=True)]
    return "\n\n".join([*lines, "Assistant:"])


def _marked_text(message: Message, n_before: int) -> str:
    """The message's text, with the number of each picture in its place unless all pictures come first anyway."""
    kinds = [isinstance(part, str) for part in message.content]
    if kinds == sorted(kinds):
        return message.text
    text, number = "", n_before
    for part in message.content:
        if isinstance(part, str):
            text += part
            continue
        number += 1
        mark = f"<image {number}>"
        text += "" if text.endswith(mark) else mark  # a label that is kept in the text names it already
    return text


def generation_kwargs(settings: GenerationSettings) -> dict[str, Any]:
    """Generation settings in the harness's words; a fresh copy, because backends change what they get."""
    kwargs: dict[str, Any] = {
        "max_new_tokens": settings.max_new_tokens,
        "temperature": settings.temperature,
        "do_sample": settings.temperature > 0,
        "until": list(settings.until),
        **settings.options,
    }
    if settings.top_p is not None:
        kwargs["top_p"] = settings.top_p
    return kwargs


def reply_from(output: object, name: str = "the backend") -> Reply:
    """What a backend returned as a `Reply`.

    The harness's failure texts are errors, and `""` is `empty`, because many backends return it for any exception.
    Args: name = of the backend, for errors.
    """
    pair = isinstance(output, tuple | list) and len(output) == 2 and isinstance(output[0], str)
    if not isinstance(output, str | GenerationResult) and not pair:  # the harness would make a text of it: 'None'
        return Reply(text="", status="error", error=f"{name} returned no text but {type(output).__name__}")
    text, counts = unwrap_generation_output(output)
    usage = _usage_from(counts)
    if not isinstance(text, str):
        return Reply(text="", status="error", error=f"{name} returned no text but {type(text).__name__}", usage=usage)
    if text.lstrip().startswith(FAILURE_TEXTS):
        return Reply(text="", status="error", error=redact(text)[:500], usage=usage)
    if text == NO_CONTENT:
        return Reply(text="", status="empty", error=f"{name} got a reply without content", usage=usage)
    if text == "":
        why = f"{name} returned an empty text, which many backends do for any error; see its log"
        return Reply(text="", status="empty", error=why, usage=usage)
    return Reply(text=text, usage=usage)


def _usage_from(counts: Any) -> Usage:  # noqa: ANN401 - the harness is untyped
    if counts is None:
        return UNKNOWN_USAGE
    return Usage(
        calls=1,
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        reasoning_tokens=counts.reasoning_tokens,
    )


def _broken_picture(call: Call) -> str | None:
    """Why a picture of the call cannot be decoded; found before the batch is sent, so that only this call fails."""
    for message in call.messages:
        for part in message.content:
            if isinstance(part, Picture):
                try:
                    part.pil()
                except PictureError as error:
                    return str(error)
    return None


def batch_size_of(lm: Any, model_args: Mapping[str, Any]) -> int:  # noqa: ANN401 - the harness is untyped
    """How many calls a batch may hold; API and server backends have no meaningful one: they get all that waits."""
    try:
        size = int(lm.batch_size)
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return API_BATCH
    server = any(word in type(lm).__module__ for word in SERVER_MODULES) or "base_url" in model_args
    return API_BATCH if server or size < 1 else size


SERVER_MODULES = ("openai", "vllm", "sglang", "litellm", "gemini", "claude", "gpt4", "qwen_vl_api", "srt_api", "reka")
"""Parts of module names of the harness's API and server backends."""


class _WithoutBars(io.TextIOBase):
    """Passes everything on but a progress bar's redraws, which are carriage returns, cursor moves and bare newlines."""

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - any text stream
        self._target = target
        self._newlines = 0
        self._in_bar = False
        self._line_open = False

    def write(self, text: str) -> int:
        if text.startswith(("\r", CURSOR_UP)):
            self._in_bar, self._newlines = True, 0
        elif not self._line_open and text.strip("\n") == "":
            self._newlines += 0 if self._in_bar else len(text)  # shown only if no bar follows
        else:
            self._target.write("\n" * self._newlines + text)
            self._in_bar, self._newlines = False, 0
            self._line_open = not text.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def quiet_bars() -> Iterator[None]:
    """Hides the bar that each `generate_until` call of the harness draws; warnings and errors still come through."""
    with contextlib.redirect_stderr(_WithoutBars(sys.stderr)):
        yield
