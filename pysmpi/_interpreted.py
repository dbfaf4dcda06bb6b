"""Runs the compiled rooms from their sources, so that both forms can be tested in one install."""

from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any


class SourceFinder:  # without importlib.abc, which loads modules that a run does not need
    """Finds the `.py` file of a pysmpi module that also has an extension module."""

    def find_spec(self, fullname: Any, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith("pysmpi."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or spec.origin.endswith(".py"):
            return spec
        folder = Path(spec.origin).parent
        source = folder / (fullname.rpartition(".")[2] + ".py")
        if not source.exists():
            return spec
        loader = SourceFileLoader(fullname, str(source))
        return spec_from_file_location(fullname, source, loader=loader)


def prefer_source(meta_path: list[Any]) -> None:
    """Put the finder before the one that looks in folders."""
    meta_path.insert(meta_path.index(PathFinder), SourceFinder())
