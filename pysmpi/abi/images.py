"""The copies of a rank with a compiled program: the program, and the libraries that are its own.

These are the libraries that call MPI, directly or through others, that of Fortran with its units,
and those that the user names. All others are loaded once for all ranks.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from pysmpi.abi import elf, engine, sites
from pysmpi.abi.copies import FileCopy, short_name
from pysmpi.abi.libraries import SYSTEM, changes_of, load_all_shared
from pysmpi.errors import UsageError
from pysmpi.isolation.loading.needed_libraries import chain_to_mpi, located

_CXX, _OPEN_STREAMS = "libstdc++.so", "_ZNSt8ios_base4InitC1Ev"  # the constructor of ios_base::Init
_OWN = "libgfortran.so"  # its units belong to a rank
_cxx_streams = ctypes.create_string_buffer(64)
# Of the process, whichever functions a rank sees.
_open, _close, _chdir, _fchdir, _symlink = os.open, os.close, os.chdir, os.fchdir, os.symlink


@dataclass
class PrivateFile:
    """A file of which ranks have copies, and the files that its needed libraries are."""

    library: elf.SharedLibrary
    number: int  # for the lines of its calls
    private: dict[str, str] = field(default_factory=dict)  # files by the names that it needs


@dataclass
class ImagePlan:
    """The files that a rank loads: each after the libraries that it needs."""

    parts: list[PrivateFile] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)  # files that have to be loaded before
    copy: FileCopy | None = None  # that all ranks can load

    def close(self) -> None:
        """No rank loads its files any more."""
        if self.copy is not None:
            self.copy.close()
            self.copy = None


class ImagePlanner:
    """Finds the libraries of a program, and decides which of them ranks have for themselves."""

    def __init__(self, name: str, chosen: Sequence[str]) -> None:
        self.name = name
        self.chosen = chosen  # names or paths that the user wants to be private
        self.used: set[str] = set()

    def plan(self, library: elf.SharedLibrary) -> ImagePlan:
        """The plan for an executable, or for a library that it opens."""
        result = ImagePlan()
        self._add(result, library, (), {})
        return result

    def check(self) -> None:
        """Raise an error for a chosen library that the program does not need."""
        for each in self.chosen:
            if each not in self.used:
                raise UsageError(
                    f"smpi/privatization: {self.name} needs no library {each} directly or through "
                    "others of which ranks have copies"
                )

    def _add(
        self,
        plan: ImagePlan,
        library: elf.SharedLibrary,
        paths: tuple[str, ...],
        seen: dict[str, PrivateFile],
    ) -> None:
        part = seen[library.path] = PrivateFile(library, sites.number_of(library.path))
        paths = (*library.paths, *paths)
        origin = os.path.dirname(os.path.realpath(library.path))
        for _, name in library.needed:
            if elf.MPI.match(name) or SYSTEM.match(name):
                continue
            file = located(name, paths, origin)
            if file is None or not self.private(name, file):
                if (file or name) not in plan.shared:
                    plan.shared.append(file or name)
                continue
            part.private[name] = file
            if file not in seen:
                other = elf.read_library(file)
                if other is None:
                    raise UsageError(f"{self.name}: needs {name}, which is no library ({file})")
                elf.replacements(file, [needed for _, needed in other.needed])
                self._add(plan, other, paths, seen)
        plan.parts.append(part)

    def private(self, name: str, file: str) -> bool:
        """Whether ranks have copies of a library."""
        chosen = [each for each in self.chosen if each in (name, file) or name.startswith(each)]
        self.used.update(chosen)
        return bool(chosen) or name.startswith(_OWN) or chain_to_mpi(file) is not None


def share(name: str, plan: ImagePlan) -> None:
    """Load the libraries that all ranks share. Raises `UsageError` if one is missing."""
    names = {path: os.path.basename(path) for path in plan.shared}
    for path in plan.shared:
        if not names[path].startswith(_CXX):
            continue
        library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        # Programs have copies of its streams, which have to be open before.
        getattr(library, _OPEN_STREAMS)(_cxx_streams)
        engine.adopt_cxx_streams()
    try:
        load_all_shared([path for path in plan.shared if os.path.isabs(path)])
        for path in plan.shared:
            if not os.path.isabs(path):
                ctypes.CDLL(path)
    except OSError as error:
        raise UsageError(f"{name}: needs a library that cannot be loaded: {error}") from None


def load(
    plan: ImagePlan,
    loaded: dict[str, str],
    into: Callable[[str, int, int, tuple[tuple[str, int, int], ...]], tuple[int, ...]],
) -> int:
    """Load copies of the files of a plan; the base address of the last one.

    `loaded` has the names of those that the rank has, by file. `into` gets the path of the last
    one, its number and size, and the same of the others; it returns base addresses. Raises
    `OSError`.
    """
    from shutil import rmtree  # most programs have no libraries of their own
    from tempfile import mkdtemp

    root = plan.parts[-1]
    others = [part for part in plan.parts[:-1] if part.library.path not in loaded]
    folder, before = "", -1
    with ExitStack() as stack:
        copies: list[FileCopy] = []
        if others:
            # The loader takes names with a slash for paths from the current directory.
            folder = mkdtemp(prefix="pysmpi-")
            stack.callback(rmtree, folder, ignore_errors=True)
        for part in others:
            loaded[part.library.path] = f"./{short_name()[1:]}"
        for part in (*others, root):
            copies.append(stack.enter_context(closing(_copy(part, loaded))))
            if part is not root:
                _symlink(copies[-1].file, os.path.join(folder, loaded[part.library.path]))
        rows = tuple(
            (loaded[part.library.path], part.number << sites.SHIFT, part.library.size)
            for part in others
        )
        path = copies[-1].path()
        if others:
            before = _open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _chdir(folder)
        try:
            bases = into(path, root.number << sites.SHIFT, root.library.size, rows)
        finally:
            if others:
                _fchdir(before)
                _close(before)
        for copy, base in zip(copies, (*bases[1:], bases[0])):
            copy.share(base)
    loaded[root.library.path] = path
    return bases[0]


def load_alone(
    plan: ImagePlan,
    loaded: dict[str, str],
    into: Callable[[str, int, int, tuple[()], int], tuple[tuple[int, ...], bool]],
) -> int:
    """Load the program of a plan with no other file; its base address. Raises `OSError`.

    `into` is that of `load`, but gets the descriptor of the file, too. It returns whether the file
    can be loaded again: then one copy serves all ranks, and each has its own data in memory.
    """
    (root,) = plan.parts
    copy, plan.copy = plan.copy or _copy(root, loaded), None
    again = False
    try:
        path = copy.path()
        size = root.library.size
        (base,), again = into(path, root.number << sites.SHIFT, size, (), copy.descriptor)
        if again:
            plan.copy = copy
        else:
            copy.share(base)
    finally:
        if not again:
            copy.close()
    loaded[root.library.path] = path
    return base


def _copy(part: PrivateFile, loaded: dict[str, str]) -> FileCopy:
    library = part.library
    names = {name: loaded[file] for name, file in part.private.items()}
    for name, own in names.items():
        if len(own) > len(name):
            raise OSError(f"the name of its library {name} is too short for a copy")
    changes = [*changes_of(library, names), *library.of_program()]
    if library.soname is not None:
        offset, name = library.soname
        changes.append((offset, short_name().encode().ljust(len(name), b"\0")))
    return FileCopy(library, changes)
