"""InterFeedback tasks."""
