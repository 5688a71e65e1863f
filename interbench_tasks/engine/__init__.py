"""Many episodes at once: concurrency, batching, the ledger's place in a call, progress.

An episode is a coroutine. The coroutines run on an event loop in a helper thread; batches of calls to harness models
are generated on the thread that called `Engine.run`, because no model may be called from another one.
"""

from interbench_tasks.engine.contracts import BatchedModel, BatchReport, EngineReport, LedgerLike
from interbench_tasks.engine.engine import Engine
from interbench_tasks.engine.failures import text_of_failure

__all__ = ["BatchReport", "BatchedModel", "Engine", "EngineReport", "LedgerLike", "text_of_failure"]
