"""MMPCBench tasks."""
