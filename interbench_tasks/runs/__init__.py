"""Runs: playing a task's episodes, the folder that keeps them, and scoring what it holds."""
