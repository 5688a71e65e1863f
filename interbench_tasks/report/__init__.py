"""Estimates and records -> tables and pages."""
