"""Pure functions from records to estimates: `intervals` has the statistics, one file a benchmark has its metrics."""
