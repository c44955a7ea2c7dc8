"""Install the import hooks of a capture; Python runs this file at startup, as its directory is in PYTHONPATH.

Python processes that the program starts are captured too. The interpreter need not be ours: the stand-ins
import this package from its own directory.
"""

import importlib.util
import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

SETTING = "INSPECT_KERNEL_CAPTURE"


class _PackageFinder(MetaPathFinder):
    """Import finder for packages in given directories."""

    def __init__(self, directories: "dict[str, str]") -> None:
        self.directories = directories

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        return PathFinder.find_spec(name, [self.directories[name]]) if name in self.directories else None


def _run_next_sitecustomize() -> None:
    """Run the next `sitecustomize` on the path, which this file hides."""
    own_directory = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - may be a very old Python
    paths = [path for path in sys.path if os.path.abspath(path) != own_directory]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get(SETTING):
    settings = json.loads(os.environ[SETTING])
    if sys.version_info < (3, 10):  # noqa: UP036 - the program's own interpreter
        sys.exit("inspect-kernel capture needs Python 3.10 or newer, and this is " + sys.version.split()[0])
    # the interpreter may have another version of this package installed
    sys.meta_path.insert(0, _PackageFinder(settings["own"]))
    sys.path.extend(settings.get("import_paths", ()))
    from artifact_inspector.compiling.capture.program import install_import_hooks  # captured programs only

    install_import_hooks(settings)
    _run_next_sitecustomize()
