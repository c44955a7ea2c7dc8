"""The process that compiles: imports Triton once, then forks a child for every kernel and target.

Reads one JSON request from its standard input: `{"asks": […], "workers": n, "time_limit": seconds}`,
each ask a kernel for some targets:

    place, signature, constexprs, options, configs   as a `KernelRequest` has them; the place may be a
                 file `.ttir` or `.ttgir` too, which is compiled on from there
    targets      as `parse_target` reads them
    out          the Triton cache to fill
    environment  variables for these compiles alone
    untrusted    true for arguments and options of a cache: limits, and no import from the working directory
    look         true to compile nothing: what is not in the cache is a row with `pending`
    said         the file to keep all in that the compiler says; of one kernel for one target

and writes lines of JSON: `{"reading": ask}` before it imports the file of one, `{"jobs": how many there
are}`, then one for each job as it ends. What is in the cache already is found by its key, with no child.
The process that asked never loads Triton, so it may have threads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from artifact_inspector.compiling.forking import Work, run
from artifact_inspector.compiling.worker.standin import stand_in_for_driver, stand_in_for_torch


def serve(plan: Callable[[Mapping[str, Any]], Iterator[Work | dict[str, Any]]]) -> None:
    """Answer the request on standard input: a line of JSON for each job.

    Args:
        plan: the work of an ask, or rows where there is nothing to do: what is cached, what is refused.
    """
    # a terminated worker must still end its children: turn the signal into an exit
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Ctrl-C reaches every process of the terminal; the one that asked ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request = json.load(sys.stdin)
    # a kernel's file may print when it is imported: that is no answer
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(line: Mapping[str, Any]) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    work: list[Work] = []
    rows: list[dict[str, Any]] = []
    for number, ask in enumerate(request["asks"]):
        # who asked must know whom to blame, should an import end this process
        say({"reading": number})
        for planned in plan(ask):
            place = {"ask": number, "index": len(work) + len(rows)}
            if isinstance(planned, Work):
                work.append(replace(planned, label={**place, **planned.label}))
            else:
                rows.append({**place, **planned})
    say({"jobs": len(rows) + len(work)})
    for row in rows:
        say(row)
    for row in run(work, request["workers"], request["time_limit"]):
        say(row)


def main(lent: Iterable[str] = ()) -> None:
    """Serve with the Triton of this Python.

    Args:
        lent: directories of another Python, whose packages a kernel's file may import.
    """
    # imported before the first fork, so that every child has Triton for nothing
    from artifact_inspector.compiling.worker.planning import plan

    stand_in_for_driver()

    sys.path.extend(lent)
    stand_in_for_torch()
    serve(plan)


if __name__ == "__main__":
    main()
