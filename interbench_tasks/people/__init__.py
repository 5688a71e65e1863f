"""People in the loop: the desk between a run and whoever answers for it, and what they fill in."""
