"""Task YAMLs that ship with Interbench, and their data."""
