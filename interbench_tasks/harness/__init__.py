"""The bridge to lmms-eval; the only folder that imports it."""
