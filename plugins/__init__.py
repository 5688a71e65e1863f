"""Plugins that ship with Interbench; each is found by its entry point, like a stranger's."""
