"""Questions with feedback in three levels: the items of `interfeedback_human_demo`."""
