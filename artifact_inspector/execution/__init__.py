"""Simulates the machine code of a kernel launch, without a GPU.

The integers of machine code decide which path a kernel takes and which addresses it accesses. They follow
from the arguments and the grid, and are computed here for every lane. Floats are mostly not computed. A value
that depends on data which was not given is *unknown*, and keeps the names of the missing inputs. A result
that depends on an unknown value is reported as unknown with those names; never assumed.

Structure, lowest layer first; each layer imports only those before it. `interpreter` knows no instruction
set:

- `lanes`: a value over all lanes of some CTAs. `Known` is one number if all lanes agree, otherwise an array
  (CTAs or 1, threads or 1). `Unknown(data, bad, why)` marks the unknown bits. `apply(f, *values)` computes
  whole registers, `choose(mask, yes, no)` selects by lane, `Names` assigns each missing input a bit.
- `shifted`: `AffineValue`, an affine value: a number per CTA plus a number per lane. Operations on it are
  computed
  once for the lanes and once for the CTAs, exactly; if the result is not affine, it becomes an array.
  Only a step with `Step.sums` receives affine values; every other step receives arrays.
- `pieces`: `Pieces`, a register partitioned by lanes: one value for each set of lanes, as warp specialization
  and elected lanes produce. Only a step that ignores inactive lanes (`Step.by_lane`) receives one part.
- `launch`: `Launch` (grid, arguments by name), `Tensor` (shape, stride, dtype, pointer, values),
  `place(launch)`, which assigns addresses to tensors without one, and `evaluate_extent` for grid expressions.
- `counters`: `StepCounters`, one list per counter with one entry per step; `reason` names what a count depends on.
- `wavefronts`: `count_sectors`, `count_wavefronts` …: the cost of an access, from addresses (warps, lanes).
- `banks`: banks and wavefronts of one warp's access to shared memory, as `StepCounters` keeps it (`WarpAccess`).
- `runs`: merged intervals of integers, for footprints that many CTAs share at different offsets.
- `memory`: `Memory(launch)` (tensors, touched bytes, out-of-bounds accesses); `scratch`: `CtaMemory` (shared or
  local memory); `footprints`: the sectors of each tensor that each CTA reads.
- `program`, `machine`: `Program` (steps with their `run`, decoded once), `Step`, `Machine` (registers, groups
  of converged lanes; `converging` implements their barriers). A step's `run(machine)` reads
  `machine.read(name)`, writes `machine.write(name, value)` for the lanes in `machine.on`, and ends in
  `machine.branch(taken, index)`, `machine.leave()` or nothing. CTAs that diverge get machines of their own.
  They wait for each other at the reconvergence point (`reconvergence`) and are merged there (`joining`).
- `trips`, `changes`, `proving`, `rehearsal`: loop iterations that are simulated in parallel, as if they were
  further CTAs, if an induction proof shows that the result is the same.
- `asked`: the lanes of a memory access; CTAs that access the same addresses plus an offset share one row.
- `access`: loads, stores and atomics of a machine's lanes, and their counters, for any instruction set:
  `count_global_access`, `load_global`, `count_shared_access`, `load_shared`, `store_shared`.

Above the interpreter:

- One folder per instruction set, `sass` and `amdgcn`. Its `semantics` has a table `SEMANTICS: opcode →
  builder
  of its run` and `read_program(module, kernel)`. Its other modules hold the rows (`integer`, `logic`,
      `float`,
  `lanes`, `memory`, `control`) and the readers and writers of operands (`operands`). The rows of AMDGCN are
  keyed by the actions that `formats` assigns to opcodes. `Environment` holds what a launch provides:
      constants,
  special registers, arguments. In AMDGCN, lane masks (EXEC too) are numbers; `amdgcn.operands.on_lanes`
  activates lanes by EXEC.
- `loading`, `running`, `provenance`, `order`, `totals`, `prediction`, `roofline`: load a kernel's files as a
  program, simulate a whole launch, classify accesses outside of every tensor, find which CTA reads what in
  which wave, and total the counters.
- `timing`: estimates which units a launch keeps busy and what it waits for, and ranks launches.

To support a new opcode, add one row. An opcode without a row writes unknown results and is listed in
`Program.not_understood`.
"""
