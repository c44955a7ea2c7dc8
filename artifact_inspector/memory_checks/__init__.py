"""Memory errors of a launch, found by simulation: out of bounds, races, misaligned accesses, coverage.

`launch_check` simulates a launch once and applies the checks. A second run records intervals, and only for
tensors whose marks do not already rule out a race. `access_log` receives the accesses. One module per check:
`out_of_bounds` (with misaligned accesses), `races`, `coverage`, `shared_hazards`.
"""
