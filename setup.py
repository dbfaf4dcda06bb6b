"""Compiles the hot rooms with mypyc; without a compiler they stay plain Python.

Eleven things cannot be Python and are in C: the functions that numpy calls while memory is folded,
copies of large blocks past the processor's cache and of strided blocks, the buffers that objects
export, the integers of handles that C code finds in them, searches in many dictionaries, the
versions of dictionaries, assignments in shared modules, the tracing and profiling functions of a
thread, the stacks for the Python frames of ranks, the thread that notices ranks that wait in C, and
the MPI library that compiled programs call.

`PYSMPI_PURE=1` builds without compiling anything. `PYSMPI_OPTIMIZE=0` compiles in a third of the
time, for tests of the build.
"""

import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from glob import glob
from importlib.util import find_spec
from multiprocessing import get_context
from threading import Lock

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOMS = [
    "pysmpi/kernel/*.py",
    "pysmpi/network/flows.py",
    "pysmpi/isolation/exchange.py",
    "pysmpi/isolation/kinds/greenlet_switches.py",
    "pysmpi/isolation/kinds/thread_hooks.py",
    "pysmpi/isolation/modules.py",
    "pysmpi/isolation/names.py",
    "pysmpi/isolation/rank_state.py",
    "pysmpi/time/cpu_clock.py",
    "pysmpi/time/stopwatch.py",
    "pysmpi/mpi/base/integers.py",
    "pysmpi/mpi/base/owners.py",
    "pysmpi/mpi/base/running.py",
    "pysmpi/mpi/base/state.py",
    "pysmpi/mpi/base/telling.py",
    "pysmpi/mpi/buffers/aliasing.py",
    "pysmpi/mpi/buffers/contiguous.py",
    "pysmpi/mpi/buffers/copying.py",
    "pysmpi/mpi/groups/agreement.py",
    "pysmpi/mpi/groups/communicator.py",
    "pysmpi/mpi/point_to_point/envelopes.py",
    "pysmpi/mpi/point_to_point/immediate.py",
    "pysmpi/mpi/collective/arguments.py",
    "pysmpi/mpi/collective/contribution.py",
    "pysmpi/mpi/collective/data.py",
    "pysmpi/mpi/collective/moving.py",
    "pysmpi/mpi/collective/reductions.py",
    "pysmpi/mpi/collective/schedules.py",
    *(
        f"pysmpi/checkers/{name}.py"
        for name in (
            "awaited",
            "base",
            "clocks",
            "context",
            "expressions",
            "memory",
            "memory_of_calls",
            "order",
            "pending",
            "signatures",
        )
    ),
    "pysmpi/checkers/kinds/*.py",
    "pysmpi/ranks/observed_calls.py",
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
# table.
FLAGS = ["-fvisibility=hidden"]
if sys.platform == "linux":
    FLAGS += ["-fno-semantic-interposition", "-fno-plt"]
    # Each waiting rank has a copy of its stack, so functions should not grow by those that they
    # inline. Clang, the compiler of macOS, has no such option.
    FLAGS += ["-fconserve-stack"]


# Each of these is a library of its own.
IN_C = [
    "pysmpi/mpi/base/exporter",
    "pysmpi/mpi/base/handle_fields",
    "pysmpi/mpi/base/memcopy",
    "pysmpi/mpi/c_interface/conversions",
    "pysmpi/explore/audit_events",
    "pysmpi/isolation/kinds/attribute_hooks",
    "pysmpi/isolation/kinds/trace_hooks",
    "pysmpi/isolation/dict_versions",
    "pysmpi/isolation/frame_stacks",
    "pysmpi/python/dictionary_search",
]
# The MPI library of compiled programs. Its parts share process.h.
ENGINE = (
    "engine", "calls", "faults", "streams", "c_library", "options", "loading", "images", "process",
    "memory", "threads",
    "stacks", "closures", "copied", "smpi",
)  # fmt: skip
# The MPI libraries of compiled programs, on processors that the engine knows, with
# the names under which copies of programs need them (as in `pysmpi/abi/interfaces.py`).
ENTRY_POINTS = "pysmpi/abi/engine"
LIBRARY = "psm_mpich.so"
INTERFACES = {"openmpi": "psm_ompi.so", "standard": "psm_std.so", "fortran": "psm_fort.so"}
PROCESSORS = ("x86_64", "aarch64")

# They serve searches, memory folding, huge pages and the watch of threads, which need its system
# calls.
IN_C_ON_LINUX = [
    "pysmpi/explore/rewinding",
    "pysmpi/folding/hooks",
    "pysmpi/job/huge_pages",
    "pysmpi/waiting/stalls/watch",
]


class OptionalBuild(build_ext):
    """Builds the extensions if it can, and says so if it cannot."""

    def run(self):
        try:
            _find_compiler()
            started = time.monotonic()
            self.chosen_compiler = self.compiler  # a build replaces the name by an object
            # The C compiler has the other cores while mypyc, on one core, translates.
            translation = Translation()
            print("pysmpi: translating to C", flush=True)
            by_hand = in_c()
            self._build(by_hand, "parts in C")
            self._build(translation.extensions(), "translated modules")
            self.distribution.ext_modules = self.extensions = [*by_hand, *self.extensions]
            _test_facts("." if self.inplace else self.build_lib)
            print(f"pysmpi: compiled in {time.monotonic() - started:.0f} s", flush=True)
        except Exception as error:  # any compiler trouble leaves a working pure-Python package
            self.extensions = []
            print(f"pysmpi: not compiled, runs interpreted ({error})", file=sys.stderr)

    def _build(self, extensions, name):
        self.name = name
        self.distribution.ext_modules = extensions
        # Read the options and the list of extensions again, as at the start.
        self.finalized, self.compiler, self.swig_opts = False, self.chosen_compiler, None
        self.ensure_finalized()
        super().run()

    def build_extensions(self):
        """Compile all files and link all libraries on all cores."""
        compile_in_turn = self.compiler.compile
        files = sum(len(extension.sources) for extension in self.extensions)
        progress = Progress(self.name, files)

        def compile_at_once(sources, **options):
            # The longest first, or the last of them keeps one core busy and the others not.
            sources = sorted(sources, key=os.path.getsize, reverse=True)
            compile_one = partial(_compile_one, compile_in_turn, options, progress)
            return [name for names in pool.map(compile_one, sources) for name in names]

        self.compiler.compile = compile_at_once
        self.parallel = _cores()
        with ThreadPoolExecutor(_cores()) as pool:
            super().build_extensions()


class WithApplications(build_py):
    """Builds the package with the applications that studies run."""

    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            target = os.path.join(self.build_lib, "pysmpi", "apps")
            self.mkpath(target)
            for path in sorted(glob("apps/*.py")):
                self.copy_file(path, target)


class Progress:
    """Lines that tell how many files the compiler has done."""

    def __init__(self, name, files):
        self.name = name
        self.files = files
        self.done = 0
        self.lock = Lock()

    def step(self):
        with self.lock:
            before, self.done = self.done, self.done + 1
            if self.done * 10 // self.files > before * 10 // self.files:
                print(f"pysmpi: {self.name}: {self.done} of {self.files} files", flush=True)


def _test_facts(folder):
    """Say which parts of the built package are off, as Python or numpy are not what they expect."""
    program = (
        "from pysmpi.python import facts; facts.assume(facts.run_tests() or {}); "
        "print(*facts.lines(), sep='\\n', end='')"
    )
    variables = {**os.environ, "PYTHONPATH": os.path.abspath(folder), "PYSMPI_WITHOUT": ""}
    variables["PYTHONDONTWRITEBYTECODE"] = "1"  # the folder becomes a wheel
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=variables, capture_output=True, text=True
    )
    for line in (done.stdout + done.stderr).splitlines():
        print(f"pysmpi: {line}", file=sys.stderr)


def _compile_one(compile_in_turn, options, progress, source):
    objects = compile_in_turn([source], **options)
    progress.step()
    return objects


def _cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _find_compiler():
    """Raise an error if the command of the compiler is missing: translating takes a while."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    if os.name == "posix" and command and shutil.which(command[0]) is None:
        raise RuntimeError(f"no C compiler: there is no command {command[0]}")


def in_c():
    parts = [*IN_C, *IN_C_ON_LINUX] if sys.platform == "linux" else IN_C
    extensions = [Extension(path.replace("/", "."), [path + ".c"]) for path in parts]
    if sys.platform == "linux" and platform.machine() in PROCESSORS:
        extensions.append(entry_points())
        extensions += interfaces()
    return extensions


def entry_points():
    """Return the extension with the functions of MPI in C, whose source is made from a table."""
    made = "pysmpi/abi/entries.c"
    table = runpy.run_path("pysmpi/abi/table.py")
    with open(made, "w", encoding="utf-8") as stream:
        stream.write(table["entry_points"]())
    return Extension(
        ENTRY_POINTS.replace("/", "."),
        [*(f"pysmpi/abi/{each}.c" for each in ENGINE), made],
        depends=[f"pysmpi/abi/{each}" for each in ("engine.h", "process.h", "functions.txt")],
        extra_compile_args=["-fvisibility=hidden"],
        extra_link_args=[f"-Wl,-soname,{LIBRARY}"],
    )


def interfaces():
    """Return the libraries of other binary interfaces, which are no modules of Python."""
    runpy.run_path("pysmpi/abi/families.py")["write"]("pysmpi/abi/generated")
    sources = ["engine.h", "family.h", "roles.h", "fortran.h", "functions.txt", "constants.txt"]
    return [
        Extension(
            f"pysmpi.abi.{name}",
            [f"pysmpi/abi/{name}.c"],
            depends=[f"pysmpi/abi/{each}" for each in sources],
            # They only pass calls on: more optimization doubles the time of the compiler.
            extra_compile_args=["-fvisibility=hidden", "-Wno-unused-function", "-Og", "-g0"],
            extra_link_args=[f"-Wl,-soname,{library}"],
        )
        for name, library in INTERFACES.items()
    ]


class Translation:
    """The rooms as extensions, which mypyc translates to C in a forked child.

    At its end, Python takes half as long to free the objects of mypyc as mypyc takes to work. The
    child ends without this. Where forks are not safe, this process translates.
    """

    def __init__(self):
        self.child = None
        if sys.platform == "linux" and _has_mypyc():
            context = get_context("fork")
            self.result, sender = context.Pipe(duplex=False)
            # The function is not pickled: pip executes this file as a text.
            self.child = context.Process(target=lambda: sender.send(_translate()), daemon=True)
            self.child.start()
            sender.close()

    def extensions(self):
        """Wait for mypyc, and return the extensions; without mypyc, there are none."""
        if not _has_mypyc():
            return []
        extensions = self._of_child() if self.child else _translate()
        if os.name == "posix":
            for extension in extensions:
                # The list is one object for all of them.
                extension.extra_compile_args = [*extension.extra_compile_args, *FLAGS]
        return extensions

    def _of_child(self):
        try:
            return self.result.recv()
        except EOFError:
            raise RuntimeError("mypyc has failed") from None
        finally:
            self.child.join()


def _has_mypyc():
    return find_spec("mypyc") is not None


def _translate():
    from mypyc.build import mypycify

    sources = sorted(path for room in ROOMS for path in glob(room) if "__init__" not in path)
    # What they import is checked elsewhere: a build needs no stubs of other packages.
    options = [
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-warn-unused-ignores",
    ]
    # Several files, so that the compiler uses all cores.
    return mypycify(
        [*options, *sources],
        opt_level=os.environ.get("PYSMPI_OPTIMIZE", "3"),
        debug_level="0",
        multi_file=True,
        group_name="pysmpi",
    )


pure = os.environ.get("PYSMPI_PURE") == "1"
setup(
    ext_modules=[] if pure else in_c(),
    cmdclass={"build_ext": OptionalBuild, "build_py": WithApplications},
    # `pip install -v` shows the progress, not each command of the compiler.
    verbose=0,
)
