"""Backends: what answers for a role."""
