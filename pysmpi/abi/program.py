"""Compiled programs that call MPI: a copy of the executable for each rank, with its own globals."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from signal import Signals

from pysmpi.abi import connection, elf, engine, interfaces, sites
from pysmpi.abi.process import CompiledProcess, COptions, put
from pysmpi.abi.timer import EntryTimer
from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.isolation.loading.needed_libraries import chain_to_mpi, located
from pysmpi.mpi.base.options import RcOptions
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.processes import environment
from pysmpi.python.frames import shorten

STACK = 256 << 20  # bytes of addresses for the stack of a rank; only what it uses is memory
VARIABLES = frozenset({"setenv", "putenv", "unsetenv", "clearenv", "environ"})
_BUFFERED, _LINES = 0, 1  # _IOFBF, _IOLBF
_FOLDER = "/proc/self/fd"
_copies = count(1)
_CXX, _OPEN_STREAMS = "libstdc++.so", "_ZNSt8ios_base4InitC1Ev"  # the constructor of ios_base::Init
_GFORTRAN, _UNBUFFERED = "libgfortran.so", "GFORTRAN_UNBUFFERED_PRECONNECTED"
_cxx_streams = ctypes.create_string_buffer(64)

# Of the process, whichever functions a rank sees.
_memfd_create, _close = os.memfd_create, os.close


def _crash(signal: int, site: int, full: bool, library: str | None, name: str | None) -> None:
    """End the job as a signal ends a process of a real MPI."""
    if site:
        file, line, function = sites.place_of(site)
        where = f" at {shorten(file)}:{line} in {function}"
    else:
        where = f" in {name or 'a function'} of {os.path.basename(library or 'a library')}"
    what = "used more than its stack has" if full else f"got signal {Signals(-signal).name}"
    current().abort(128 - signal, f"{what}{where}")


class CompiledProgram(RankProgram):
    """An executable that was linked with an MPI library."""

    def __init__(self, path: str, arguments: Sequence[str] = ()) -> None:
        self.name = path
        self.path = os.path.abspath(path)
        self.arguments = [path, *arguments]

    def prepare(self) -> None:
        self.executable = elf.read(self.name, read_bytes(self.path))
        # Variables of a process are the engine's.
        self.c_functions = self.executable.undefined - VARIABLES
        self.number = sites.number_of(self.path)
        self._load_libraries()
        connection.start()
        try:
            interfaces.attach(self.executable.libraries, engine.core())
        except OSError as error:
            raise UsageError(f"{self.name}: {error}") from None

    def _load_libraries(self) -> None:
        """Load the libraries that ranks share, before any rank has streams of its own."""
        origin = os.path.dirname(self.path)
        for name in self.executable.needed:
            path = located(name, tuple(self.executable.paths), origin) or name
            if name.startswith(_GFORTRAN):
                # Records of several ranks may not wait in one buffer.
                os.environ[_UNBUFFERED] = "y"
            try:
                library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL if name.startswith(_CXX) else 0)
            except OSError as error:
                raise UsageError(
                    f"{self.name}: needs {name}, which cannot be loaded: {error}"
                ) from None
            finally:
                os.environ.pop(_UNBUFFERED, None)
            if name.startswith(_GFORTRAN):
                engine.adopt(path)
            if name.startswith(_CXX):
                # Programs have copies of its streams, which have to be open before.
                getattr(library, _OPEN_STREAMS)(_cxx_streams)
            chain = chain_to_mpi(path) if path != name else None
            if chain is not None:
                raise UsageError(
                    f"{self.name}: expected a program whose own code alone calls MPI, got one that "
                    f"needs {name}, which calls MPI too"
                )

    def main(self) -> Callable[[], object]:
        return self._run

    def _run(self) -> None:
        environment.start(options=RcOptions(COptions))
        rank = current()
        timer = None
        if rank.timer is not None:
            timer = rank.timer = EntryTimer(rank.timer, rank)
        process = CompiledProcess(STACK)
        put(process)
        base = self._load(process)
        words = tuple(os.fsencode(word) for word in self.arguments or ())
        variables = tuple(
            os.fsencode(name) + b"=" + os.fsencode(value) for name, value in os.environ.items()
        )
        if timer is not None:
            timer.start()  # the work so far was not the program's
            process.timer = timer
        try:
            status = process.run(base + self.executable.entry, words, variables)
        finally:
            if timer is not None:
                timer.enter()
            process.close()
        if isinstance(status, tuple):
            _crash(*status)
        elif status:
            sys.exit(status)

    def _load(self, process: CompiledProcess) -> int:
        descriptor = _memfd_create("pysmpi", 0)
        # The loader takes two files with one name for one: the name has the number of the copy.
        digits = f"{next(_copies):b}".replace("1", "//.").replace("0", "/.")
        path = f"{_FOLDER}{digits}/{descriptor}"
        try:
            with open(descriptor, "wb", closefd=False) as stream:
                stream.write(self.executable.data)
            base = process.load(
                path,
                _LINES if os.isatty(1) else _BUFFERED,
                2,
                self.number << sites.SHIFT,
                self.executable.size,
            )
        except OSError as error:
            raise UsageError(f"{self.name}: cannot be loaded: {error}") from None
        finally:
            _close(descriptor)
        return int(base)
