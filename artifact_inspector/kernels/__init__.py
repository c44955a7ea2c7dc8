"""The reference kernels, as a checkout has them: in `kernels/` beside the package.

An installed package has the files of that folder here instead of this one.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[2] / "kernels")]
