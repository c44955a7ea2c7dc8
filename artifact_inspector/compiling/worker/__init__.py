"""The process that compiles: imports Triton once, forks a child for every kernel and target."""
