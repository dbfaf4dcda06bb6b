"""Compiles the hot rooms with mypyc; without a compiler they stay plain Python.

Four things cannot be Python and are in C: the functions that numpy calls while memory is folded,
copies of large blocks past the processor's cache and of strided blocks, the versions of
dictionaries, and the stacks for the Python frames of ranks.

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
    "pysmpi/runtime/virtual_time/cpu_clock.py",
    "pysmpi/runtime/virtual_time/stopwatch.py",
    "pysmpi/mpi/base/integers.py",
    "pysmpi/mpi/base/owners.py",
    "pysmpi/mpi/base/running.py",
    "pysmpi/mpi/base/state.py",
    "pysmpi/mpi/base/telling.py",
    "pysmpi/mpi/buffers/contiguous.py",
    "pysmpi/mpi/buffers/copying.py",
    "pysmpi/mpi/groups/agreement.py",
    "pysmpi/mpi/groups/communicator.py",
    "pysmpi/mpi/point_to_point/envelopes.py",
    "pysmpi/mpi/point_to_point/immediate.py",
    "pysmpi/mpi/collective/contribution.py",
    "pysmpi/mpi/collective/contribution_arguments.py",
    "pysmpi/mpi/collective/data.py",
    "pysmpi/mpi/collective/execution.py",
    "pysmpi/mpi/collective/moving.py",
    "pysmpi/mpi/collective/reductions.py",
    "pysmpi/replay/executor.py",
    "pysmpi/trace/call_arguments.py",
    "pysmpi/trace/call_recorder.py",
    "pysmpi/trace/collective_calls.py",
    "pysmpi/trace/event_recorder.py",
    "pysmpi/trace/json_text.py",
    "pysmpi/trace/recorded_world.py",
    "pysmpi/trace/started_requests.py",
    "pysmpi/trace/thread_notes.py",
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

# Only this library calls the compiled functions, so the compiler may inline them, and calls need no
# table. Each waiting rank has a copy of its stack, so functions should not grow by those that they
# inline.
FLAGS = [
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fno-plt",
    "-fconserve-stack",
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
    in_c = [
        Extension("pysmpi.runtime.folding.hooks", ["pysmpi/runtime/folding/hooks.c"]),
        Extension("pysmpi.mpi.base.memcopy", ["pysmpi/mpi/base/memcopy.c"]),
        *(
            Extension(f"pysmpi.runtime.process.{name}", [f"pysmpi/runtime/process/{name}.c"])
            for name in ("dict_versions", "frame_stacks")
        ),
    ]
    try:
        from mypyc.build import mypycify
    except ImportError:
        return in_c
    sources = sorted(path for room in ROOMS for path in glob(room) if "__init__" not in path)
    # What they import is checked elsewhere: a build needs no stubs of other packages.
    options = [
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-warn-unused-ignores",
    ]
    compiled = mypycify([*options, *sources], opt_level="3", debug_level="0", group_name="pysmpi")
    if os.name == "posix":
        for extension in compiled:
            # The list is one object for all of them.
            extension.extra_compile_args = [*extension.extra_compile_args, *FLAGS]
    return [*compiled, *in_c]


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
