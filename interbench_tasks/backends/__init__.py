"""What answers for a role: APIs and simulations. Nothing here connects, or loads an SDK, at import."""
