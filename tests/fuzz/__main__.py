"""`python -m tests.fuzz`: go on with the campaign of mutants and of all other surfaces as far as is asked for."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

from tests.fuzz import turns
from tests.fuzz.campaign import Campaign, again

BYTES = 1 << 30
"""Address space that everything together may take."""


def main() -> int:
    """Run the campaign; 1 where anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--state", type=Path, default=Path(".fuzz.json"), help="where the campaign is kept")
    parser.add_argument("--files", type=int, default=1_000_000, help="damaged files in all")
    parser.add_argument("--kernels", type=int, default=100_000, help="damaged kernels in all")
    parser.add_argument("--surfaces", type=int, default=1000, help="cases in all of each other surface")
    parser.add_argument("--only", metavar="WORD", default="", help="of the other surfaces, those of such names")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--again", metavar="MUTANT", help="only this, to its end: 'kernel 1211', 'names 7'")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    if asked.again:
        is_mutant = asked.again.startswith(("kernel ", "file "))
        print(again(asked.again) if is_mutant else turns.again(asked.again))
        return 0
    started = time.monotonic()
    campaign = Campaign.read(asked.state)
    try:
        campaign.run(asked.files, asked.kernels, asked.seconds, asked.state)
    except KeyboardInterrupt:
        campaign.write(asked.state)
    print(
        f"{campaign.files} damaged files ({campaign.refused} refused), {campaign.kernels} damaged kernels "
        f"({campaign.cut_off} cut off, {campaign.changed} of them with other verdicts and the reason), "
        f"{len(campaign.found)} finds, {campaign.seconds:.0f} s"
    )
    left = asked.seconds - (time.monotonic() - started)
    found = turns.take_turns(asked.state.with_suffix(".surfaces.json"), asked.surfaces, left, asked.only)
    return 1 if campaign.found or found else 0


if __name__ == "__main__":
    sys.exit(main())
