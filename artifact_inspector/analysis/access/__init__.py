"""How wide, guarded and cached each access is, and why."""
