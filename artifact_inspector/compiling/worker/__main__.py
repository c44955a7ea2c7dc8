"""The compiling process: imports Triton once, then forks a child for every kernel and target.

It reads JSON requests from standard input, one a line. Each of the `asks` of one is a kernel for some targets:

    place, signature, constexprs, options, configs   as in `KernelRequest`; the place may also be a `.ttir` or
                 `.ttgir` file, which is compiled from that stage on
    targets      as `parse_target` reads them
    out          the Triton cache to fill
    environment  variables for these compiles only
    untrusted    true for arguments and options of a cache: limits, and no import from the working directory
    look         true to compile nothing: an entry that is not in the cache is a row with `pending`
    output       a file for all compiler output; for one kernel and one target
`workers` is the number of concurrent compiles, `time_limit` the seconds of one, `parent` the process ID of the caller.
It writes lines of JSON: `{"reading": ask}` before it imports a file, `{"jobs": number of rows}`, then one row for each
job as it ends, and `{"processor_seconds": of this process so far}`. A file is imported once, whatever the number of
requests. Cached entries are found by their key without a child. The calling process never imports Triton, so it may
have threads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from artifact_inspector.compiling.child_processes import CompileJob, run_jobs
from artifact_inspector.compiling.worker.standin import stand_in_for_driver, stand_in_for_torch
from artifact_inspector.files.lifetime import kill_with_parent


def main(import_paths: Iterable[str] = ()) -> None:
    """Read the requests on standard input, compile with the Triton of this Python, and write a line for each job.

    Args:
        import_paths: import directories of another Python that a kernel's file may use.
    """
    # imported before the first fork, so that the children need not import Triton
    from artifact_inspector.compiling.worker.planning import plan_jobs

    stand_in_for_driver()
    sys.path.extend(import_paths)
    stand_in_for_torch()
    # a terminated worker must still end its children: turn the signal into an exit
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Ctrl-C reaches every process of the terminal; the calling process ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # standard output carries only rows: an imported file may print
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write_line(line: Mapping[str, Any]) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    for text in sys.stdin:
        request = json.loads(text)
        kill_with_parent(request["parent"])
        work: list[CompileJob] = []
        rows: list[dict[str, Any]] = []
        for number, ask in enumerate(request["asks"]):
            # if an import ends this process, the caller knows which file did
            write_line({"reading": number})
            for planned_job in plan_jobs(ask):
                row_position = {"ask": number, "index": len(work) + len(rows)}
                if isinstance(planned_job, CompileJob):
                    work.append(replace(planned_job, label={**row_position, **planned_job.label}))
                else:
                    rows.append({**row_position, **planned_job})
        write_line({"jobs": len(rows) + len(work)})
        for row in (*rows, *run_jobs(work, request["workers"], request["time_limit"])):
            write_line(row)
        usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
        write_line({"processor_seconds": sum(usage.ru_utime + usage.ru_stime for usage in usages)})


if __name__ == "__main__":
    main()
