"""Records as JSON and back: what `episodes.jsonl` holds, one record a line.

The dataclasses of `records.py` are the schema, so a new field needs nothing here. A field is left out where it is None
or empty and that is its default, and where `metadata={"left_out": True}` says so of a field that came later, so that
older records are read too. Everything else is always there, and is missed when it is not. A picture is its
`PictureRef`, never its bytes. The `run` of each reply goes to the top as `run.replies`, in the order in which the
replies stand in the record, so that `del obj["run"]` leaves what two runs of one episode have in common.

Not pydantic: it refuses the lone surrogates that some models say.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NoReturn

from interbench_tasks.errors import InterbenchError, RunFolderError, near_miss
from interbench_tasks.records import EpisodeRecord, Reply, ReplyRun

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_NOT_IN_A_LINE = re.compile("[\ud800-\udfff\x85\u2028\u2029]")
"""Lone surrogates, which UTF-8 cannot hold, and what some readers take for the end of a line."""
_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def record_to_json(record: EpisodeRecord) -> dict[str, object]:
    """A record as JSON values, its keys in the order of the fields, `run` last; lossless but for picture bytes.

    Raises: RunFolderError where `record.run` holds what JSON does not have, or the key `replies`.
    """
    runs: list[ReplyRun] = []
    try:
        obj: dict[str, object] = _codec(EpisodeRecord).encode(record, runs)
    except _Misfit as misfit:
        raise _unwritable(record, misfit) from misfit
    run = typing.cast("dict[str, object]", obj.pop("run", {}))
    if "replies" in run:
        raise _unwritable(record, "key 'run.replies' is taken: the runs of the replies go there")
    encode_run = _codec(ReplyRun).encode
    obj["run"] = {**run, "replies": [encode_run(reply_run, []) for reply_run in runs]}
    return obj


def record_from_json(obj: Mapping[str, object]) -> EpisodeRecord:
    """The record; `run`, and that of its replies, are empty where `obj` has none. Pictures are `PictureRef`s.

    Raises: RunFolderError naming the key, where `obj` has another shape than this version writes.
    """
    try:
        return _record_from_json(obj)
    except _Misfit as misfit:
        raise RunFolderError(
            f"not a record as this version of Interbench writes them: {misfit}.\n"
            "  Read it with the version that wrote it, or play the episode again."
        ) from misfit


def line_from_record(record: EpisodeRecord) -> str:
    """The record as one line of JSON without its line end; any UTF-8 file takes it.

    Lone surrogates are written as escapes and come back; but two halves next to each other come back as the one
    character that they make.

    Raises: RunFolderError where the record holds what JSON does not have, e.g. NaN.
    """
    try:
        line = _ENCODER.encode(record_to_json(record))
    except (TypeError, ValueError) as error:
        raise _unwritable(record, error) from error
    return line if line.isascii() else _NOT_IN_A_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def record_from_line(line: str) -> EpisodeRecord:
    """The record that `line_from_record` made a line of.

    Raises: RunFolderError where the line is no JSON (e.g. cut off), or has another shape than this version writes.
    """
    try:
        obj = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"not JSON ({error}): {reprlib.repr(line)}\n"
            "  The line is cut off or was changed; remove it, and the same command plays its episode again."
        ) from error
    return record_from_json(obj)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _unwritable(record: EpisodeRecord, error: object) -> RunFolderError:
    return RunFolderError(f"episode '{record.episode_id}' of task {record.task} cannot be written as JSON: {error}")


def _record_from_json(obj: object) -> EpisodeRecord:
    fields = dict(_checked_mapping(obj))
    run = fields.get("run")
    runs: Iterator[ReplyRun] = itertools.repeat(ReplyRun())
    given = None
    if run is not None:
        rest = dict(_at("run", _checked_mapping, run))
        given = rest.pop("replies", None)
        fields["run"] = rest
    if given is not None:
        decode_runs = _codec(tuple[ReplyRun, ...]).decode
        runs = iter(_at("run", _at, "replies", decode_runs, given, runs))
    record: EpisodeRecord = _codec(EpisodeRecord).decode(fields, runs)
    if given is not None and next(runs, None) is not None:
        raise _Misfit("has more entries than the record has replies", "run", "replies")
    return record


class _Misfit(InterbenchError):
    """A value that a record cannot hold, with the keys that lead to it, outermost first."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.keys = list(keys)

    def __str__(self) -> str:
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys)
        return f"key '{path.removeprefix('.')}' {self.message}" if path else f"it {self.message}"


def _at(key: str | int, function: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401 - what `function` returns
    try:
        return function(*args)
    except _Misfit as misfit:
        misfit.keys.insert(0, key)
        raise


def _must_be(what: str, value: object) -> _Misfit:
    return _Misfit(f"must be {what}, got {reprlib.repr(value)}")


def _checked_mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _must_be("a mapping", value)
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class _Codec:
    """How the values of one type become JSON values, and are checked and made again."""

    encode: Callable[[Any, list[ReplyRun]], Any]
    """Adds the run of each reply that it meets to the list."""
    decode: Callable[[Any, Iterator[ReplyRun]], Any]
    """Takes the runs of the replies in the same order."""


@functools.cache
def _codec(kind: Any) -> _Codec:  # noqa: ANN401 - a type as an annotation spells it
    if kind in _NAMES:
        return _scalar_codec(kind)
    if kind is object:
        return _Codec(lambda value, _: _plain(value), lambda value, _: value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        dataclass_codec = _DataclassCodec(kind)
        return _Codec(dataclass_codec.encode, dataclass_codec.decode)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _literal_codec(args)
    if origin is tuple and args[1:] == (...,):
        return _tuple_codec(_codec(args[0]))
    if origin is Mapping and args[0] is str:
        return _mapping_codec(_codec(args[1]))
    if origin in (typing.Union, types.UnionType) and len(args) == 2:
        if args[1] is types.NoneType:
            return _optional_codec(_codec(args[0]))
        if args[0] is str:
            return _text_or_codec(_codec(args[1]))
    raise TypeError(f"records.py has a field of type {kind}, which record_json.py cannot write")


def _scalar_codec(kind: type) -> _Codec:
    allowed = (int, float) if kind is float else kind

    def decode(value: object, _: Iterator[ReplyRun]) -> object:
        if not isinstance(value, allowed) or (kind is not bool and isinstance(value, bool)):
            raise _must_be(_NAMES[kind], value)
        return value

    return _Codec(lambda value, _: value, decode)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _at(key, _plain, part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_at(index, _plain, part) for index, part in enumerate(value)]
    if value is None or isinstance(value, str | int | float):
        return value
    raise _must_be("a JSON value", value)


def _literal_codec(allowed: tuple[object, ...]) -> _Codec:
    def decode(value: object, _: Iterator[ReplyRun]) -> object:
        if value not in allowed:
            raise _must_be(f"one of {', '.join(map(str, allowed))}", value)
        return value

    return _Codec(lambda value, _: value, decode)


def _tuple_codec(part: _Codec) -> _Codec:
    def decode(value: object, runs: Iterator[ReplyRun]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise _must_be("a list", value)
        read, found = part.decode, []
        try:
            for item in value:
                found.append(read(item, runs))
        except _Misfit as misfit:
            misfit.keys.insert(0, len(found))
            raise
        return tuple(found)

    return _Codec(lambda value, runs: [part.encode(item, runs) for item in value], decode)


def _mapping_codec(part: _Codec) -> _Codec:
    def encode(value: Mapping[str, object], runs: list[ReplyRun]) -> dict[str, object]:
        return {key: _at(key, part.encode, item, runs) for key, item in value.items()}

    def decode(value: object, runs: Iterator[ReplyRun]) -> dict[str, object]:
        return {key: _at(key, part.decode, item, runs) for key, item in _checked_mapping(value).items()}

    return _Codec(encode, decode)


def _optional_codec(part: _Codec) -> _Codec:
    return _Codec(
        lambda value, runs: None if value is None else part.encode(value, runs),
        lambda value, runs: None if value is None else part.decode(value, runs),
    )


def _text_or_codec(part: _Codec) -> _Codec:
    return _Codec(
        lambda value, runs: value if isinstance(value, str) else part.encode(value, runs),
        lambda value, runs: value if isinstance(value, str) else part.decode(value, runs),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    codec: _Codec
    left_out: object
    """The value that is left out; `_NEVER` where all are written."""


_NEVER = object()


def _field_codec(kind: type, field: dataclasses.Field[Any]) -> _Field:
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    left_out = default if default in (None, "", (), {}) or field.metadata.get("left_out") else _NEVER
    return _Field(field.name, _codec(typing.get_type_hints(kind)[field.name]), left_out)


class _DataclassCodec:
    """The fields of one dataclass; a reply's `run` goes to and comes from the list of runs."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.is_reply = kind is Reply
        fields = [field for field in dataclasses.fields(kind) if not (self.is_reply and field.name == "run")]
        self.fields = [_field_codec(kind, field) for field in fields]
        self._decoders = [(field.name, field.codec.decode, field.left_out is _NEVER) for field in self.fields]

    def encode(self, value: Any, runs: list[ReplyRun]) -> dict[str, object]:  # noqa: ANN401 - an instance of `kind`
        obj: dict[str, object] = {}
        for field in self.fields:
            part = getattr(value, field.name)
            if part != field.left_out:
                obj[field.name] = _at(field.name, field.codec.encode, part, runs)
        if self.is_reply:
            runs.append(value.run)
        return obj

    def decode(self, value: object, runs: Iterator[ReplyRun]) -> object:
        obj = value if type(value) is dict else _checked_mapping(value)
        given: dict[str, object] = {}
        name = ""
        try:  # one for all fields: this is where reading a run spends its time
            for name, decode, needed in self._decoders:
                if name in obj:
                    given[name] = decode(obj[name], runs)
                elif needed:
                    raise _Misfit("is missing")  # noqa: TRY301 - told with the keys around it, as any other
        except _Misfit as misfit:
            misfit.keys.insert(0, name)
            raise
        if len(given) < len(obj):
            unknown = next(name for name in obj if name not in given)
            raise _Misfit(f"is unknown{near_miss(unknown, [field.name for field in self.fields])}", unknown)
        if self.is_reply:
            given["run"] = _run_of_reply(runs)
        return self.kind(**given)


def _run_of_reply(runs: Iterator[ReplyRun]) -> ReplyRun:
    run = next(runs, None)
    if run is None:
        raise _Misfit("has no entry in run.replies")
    return run
