"""The conversations of `mmrc_demo`: what is said, what the pictures show, and what is asked."""
