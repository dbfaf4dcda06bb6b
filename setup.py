"""Compiles the hot rooms with mypyc; without a compiler they stay plain Python.

Memory folding has functions that numpy calls and that cannot be Python; they are in C.

`PYSMPI_PURE=1` builds without compiling anything.
"""

import os
import sys
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOMS = [
    "pysmpi/kernel/*.py",
    "pysmpi/network/flows.py",
    "pysmpi/runtime/process/exchange.py",
    "pysmpi/mpi/buffers/contiguous.py",
    "pysmpi/mpi/point_to_point/envelopes.py",
    "pysmpi/replay/executor.py",
    "pysmpi/trace/call_recorder.py",
    "pysmpi/trace/event_recorder.py",
    *(
        f"pysmpi/memory/transfer/{name}.py"
        for name in (
            "buffers",
            "caches",
            "channel",
            "doorway",
            "kinds",
            "packing",
            "pipeline",
            "room",
            "single_copy",
        )
    ),
]


class OptionalBuild(build_ext):
    """Builds the extensions if it can, and says so if it cannot."""

    def run(self):
        try:
            super().run()
        except Exception as error:  # any compiler trouble leaves a working pure-Python package
            self.extensions = []
            print(f"pysmpi: not compiled, runs interpreted ({error})", file=sys.stderr)


def extensions():
    if os.environ.get("PYSMPI_PURE") == "1":
        return []
    folding = Extension("pysmpi.runtime.folding.hooks", ["pysmpi/runtime/folding/hooks.c"])
    try:
        from mypyc.build import mypycify
    except ImportError:
        return [folding]
    sources = sorted(path for room in ROOMS for path in glob(room) if "__init__" not in path)
    # What they import is checked elsewhere: a build needs no stubs of other packages.
    options = [
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-warn-unused-ignores",
    ]
    compiled = mypycify([*options, *sources], opt_level="3", debug_level="0", group_name="pysmpi")
    return [*compiled, folding]


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
