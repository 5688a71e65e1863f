"""Tests, and the servers that they run against."""
