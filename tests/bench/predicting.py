"""Processor seconds and memory of `predict`, in turns for some checkouts, without start and imports.

    python tests/bench/predicting.py CACHE NAME CHECKOUT...

The launch is the recorded one, or that of the reference kernel's workload, which is captured before the clock starts.
Prints whether the JSON is equal in all checkouts.
"""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import hashlib, resource, sys, time
from pathlib import Path
from artifact_inspector.api.launches import find_launches, pair_launches, predict_launches
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.report.json import as_text
from artifact_inspector.report.json.prediction import prediction_document
cache, name = open_cache(Path(sys.argv[1])), sys.argv[2]
pairs = pair_launches(cache, name, (), find_launches(cache, name, (), None, {}))
started = time.process_time()
text = as_text(prediction_document(predict_launches(pairs, binary_disassembler()), []), "utf-8")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(f"{time.process_time() - started:.2f} s {peak} MiB", hashlib.sha256(text.encode()).hexdigest()[:12])
"""

if __name__ == "__main__":
    cache, name, *checkouts = sys.argv[1:]
    digests = set()
    for checkout in checkouts or ["."]:
        ran = subprocess.run([sys.executable, "-c", CHILD, cache, name], cwd=checkout, capture_output=True, text=True)
        print(checkout, (ran.stdout or ran.stderr).strip().splitlines()[-1], flush=True)
        digests.add(ran.stdout.split()[-1] if ran.stdout else checkout)
    print("equal" if len(digests) == 1 else "different")
