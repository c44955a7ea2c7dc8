"""Simulates the machine code of a kernel launch, without a GPU.

The integers of machine code decide which path a kernel takes and which addresses it accesses. They follow from the
arguments and the grid, and are computed here for every lane. Floats are mostly not computed. A value that depends on
data which was not given is *unknown*, and keeps the names of the missing inputs. A result that depends on an unknown
value is reported as unknown with those names; never assumed.

- `interpreter` knows no instruction set. `affine`, `values` and `lane_partition` are the values of registers: a number,
  an array (CTAs or 1, threads or 1), a number per CTA plus a number per lane, a value for each set of lanes. `apply`
  computes whole registers. `state` has what CTAs change by running, and forks, tiles and merges it; `machine` runs a
  program on it. A step's `run(machine)` reads and writes registers for the lanes in `machine.active_mask`, and ends in
  `branch`, `exit_lanes` or nothing. `loops`, `state_changes` and `induction` run loop iterations in parallel, as
  further CTAs, if an induction proof shows that the result is the same. `lane_accesses` finds the addresses of an
  access, `access_counting` counts it, `memory_access` moves its data.
- `sass` and `amdgcn` have one row for each opcode (`SEMANTICS`), a function that builds its `run`. `environment` holds
  what a launch provides: constants, arguments, special registers.
- The other modules load a kernel's files as a program, simulate a whole launch, and total its counters; `timing`
  estimates which units a launch keeps busy, and ranks launches.

To support a new opcode, add one row. An opcode without a row writes unknown results and is listed in
`DecodedProgram.unsupported_opcodes`.
"""
