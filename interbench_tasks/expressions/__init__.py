"""Whether two mathematical expressions are equal, decided by math-verify in processes of their own with hard limits."""

from interbench_tasks.expressions.pool import ExpressionPool, Limits, Outcome

__all__ = ["ExpressionPool", "Limits", "Outcome"]
