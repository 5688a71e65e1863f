"""Usage of our own backends in the harness's books: `--max_tokens` stops us, and its totals include every role."""

from __future__ import annotations

from interbench_tasks.engine.failures import checked_reply
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.records import Reply


class Reported:
    """A backend whose replies are entered in the harness's usage list."""

    def __init__(self, backend: Backend, *, task: str, source: str) -> None:
        self._backend = backend
        self._task = task
        self._source = source
        self.name = backend.name
        self.fingerprint = backend.fingerprint
        self.max_concurrency: int = getattr(backend, "max_concurrency", 16)
        self.simulated: bool = getattr(backend, "simulated", False)
        self.person: bool = getattr(backend, "person", False)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Settings that the server refused and that were left out since."""
        return tuple(getattr(self._backend, "left_out", ()))

    async def reply(self, call: Call) -> Reply:
        """The backend's reply; unknown usage is not entered, since the harness has no word for it."""
        from lmms_eval.models.model_utils.usage_metrics import log_usage

        reply = await self._backend.reply(call)
        usage = checked_reply(reply, self.name).usage  # what a stranger's backend gave is judged by the engine
        if usage.input_tokens is not None and usage.output_tokens is not None:
            # The harness adds up input, output and reasoning; ours are part of the output already.
            reasoning = usage.reasoning_tokens or 0
            log_usage(
                model_name=self.name,
                task_name=self._task,
                input_tokens=usage.input_tokens,
                output_tokens=max(usage.output_tokens - reasoning, 0),
                reasoning_tokens=reasoning,
                source=self._source,
            )
        return reply

    async def close(self) -> None:
        """Close the backend."""
        await self._backend.close()


def budget_used_up() -> str | None:
    """Why no further episode may start, where the harness's `--max_tokens` is used up."""
    from lmms_eval.models.model_utils.usage_metrics import is_budget_exceeded

    return "the token budget is used up (--max_tokens)" if is_budget_exceeded() else None
