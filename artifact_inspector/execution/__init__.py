"""A kernel run on paper: what a launch would execute, touch and wait for, with no GPU.

The integers of machine code decide where a kernel goes and what it touches, and they follow from its
arguments and grid. They are computed here for every lane; floats are not, and what comes of data that was
not given is *unknown by name*. What depends on an unknown is told as unknown with that name, never
guessed.

How it is built, from below; each layer knows only those before it. In `interpreter`, which knows no language:

- `lanes`: a value over all lanes of some CTAs. `Known` is one number where all lanes have the same, else
  an array (CTAs or 1, threads or 1); `Unknown(data, bad, why)` has the bits that are not known. `apply(f,
  *values)` computes whole registers, `choose(mask, yes, no)` merges, `Names` gives each missing thing a
  bit.
- `shifted`: `Shifted`, a register of very many lanes as a number of the CTA added to one of the lane: what
  is computed of it is computed once for the lanes and once for the CTAs, exactly, and where it is no such
  sum it is an array. Only a step that says so (`Step.sums`) is given it; any other is given the array.
- `pieces`: `Pieces`, a register that warps of different work, or elected lanes, hold for reasons of their
  own: a value for each set of lanes. Only a step that asks no lane that is off (`Step.by_lane`) is given one.
- `launch`: `Launch` (grid, arguments by name), `Tensor` (shape, stride, dtype, pointer, values),
  `place(launch)` which gives addresses to tensors without one, `evaluate_extent` for a grid written as an
  expression.
- `counters`: `Counts`, one list for each kind of count, one entry for each step of the program; `why` has
  what the counts of a step lack.
- `wavefronts`: `count_sectors`, `count_wavefronts` …: what an access costs, for addresses (warps, lanes).
- `banks`: what the warp's lanes that `Counts` keeps of each access (`WarpAccess`) ask, and their turns.
- `runs`: stretches of numbers, merged: what many CTAs touch alike, farther on.
- `memory`: `Memory(launch)` (tensors, bytes touched, out of bounds); `scratch`: `Scratch` (shared or local
  memory); `footprints`: which sectors of each tensor each CTA reads.
- `program`, `machine`: `Program` (steps with their `run`, decoded once), `Step`, `Machine` (registers,
  groups of lanes that have converged; `converging`: how they wait for each other). A step's `run(machine)`
  reads `machine.read(name)`, writes `machine.write(name, value)` for the lanes in `machine.on`, and ends in
  `machine.branch(taken, index)`, `machine.leave()` or nothing. CTAs that part ways become machines of
  their own, until they meet where all ways lead (`meeting`) and are one again (`joining`).
- `trips`, `changes`, `proving`, `rehearsal`: trips of a loop that run side by side, as though they were
  further CTAs, once it is proven that this is what they would do one by one.
- `asked`: the lanes that access memory, CTAs that do the same farther on as one row.
- `access`: what loads, stores and atomics of a machine's lanes do to memory and counts, for any language:
  `access_global`, `load_global`, `access_shared`, `load_shared`, `store_shared`.

Above it:

- One folder per language, `sass` and `amdgcn`; its `semantics` has one table `SEMANTICS: opcode → builder
  of its run` and `read_program(module, kernel)`, its other modules the rows (`integer`, `logic`, `float`,
  `lanes`, `memory`, `control`) and how statements name what they read (`operands`). AMDGCN's rows are
  actions that `formats` names for opcodes. Its `Environment` holds what a launch gives: constants,
  special registers, arguments. Masks of lanes are numbers there, EXEC too: `amdgcn.operands.on_lanes`
  switches lanes on by it.
- `loading`, `running`, `provenance`, `order`, `totals`, `prediction`, `roofline`: a kernel's files as a
  program, a whole launch of it, what it accesses beside its tensors, which CTA reads what when, and all that
  added up.
- `timing`: what launches would keep busy and wait for, and the order in which they would finish.

A new opcode is one row; an opcode without a row writes unknown results and stands in
`Program.not_understood`.
"""
