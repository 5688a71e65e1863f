"""Puzzles that are drawn from parameters: each answer is computed from the very parameters that are drawn."""
