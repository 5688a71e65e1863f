"""Protocols: the scripts of episodes."""
