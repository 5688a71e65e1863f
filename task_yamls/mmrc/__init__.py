"""MMRC tasks."""
