"""Metrics: pure functions of summaries."""
