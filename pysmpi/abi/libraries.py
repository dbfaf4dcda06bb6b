"""Libraries and extension modules of Python that call MPI: a copy of each for each rank.

A rank gets a copy of the file that it loads, if this needs an MPI library, and of each library on
the way to that. So each rank has the global variables of these libraries for itself. In the copies,
pysmpi's library takes the place of the MPI library, and the copies of the rank those of the other
libraries. All others, such as the C library, are shared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing
from ctypes import Array, addressof, c_char, create_string_buffer
from functools import cache
from typing import NamedTuple

from pysmpi.abi import chapters, connection, elf, engine, interfaces, staging
from pysmpi.abi.copies import FileCopy, short_name
from pysmpi.abi.values import text
from pysmpi.isolation.loading.linked_mpi import CannotCopy
from pysmpi.isolation.loading.needed_libraries import chain_to_mpi, located, plug_in
from pysmpi.mpi.base.handles import show_handles
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.processes.environment import VENDOR

# Libraries that are there in any process.
SYSTEM = re.compile(r"(libc|libdl|libpthread|libm|librt|libpython[\d.]*|ld-.*)\.so")
# Libraries whose symbols are there in any process: a copy needs another one in the place of these.
_SPARE = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "libc.so.6")
_FOLDER = "/proc/"


class _Part(NamedTuple):
    """A library, with the files of those among its needed ones of which ranks get copies."""

    library: elf.SharedLibrary
    needs_mpi: bool  # directly, or through others
    opens_mpi: bool  # when it is asked to, directly or through others
    interface: str | None  # of the MPI library that it names, or its libraries do
    copied: dict[str, str]  # files by the names under which it needs them
    shared: tuple[str, ...]  # files that have to be loaded before


class LoadedCopy(NamedTuple):
    """A copy that has been loaded: its path for `dlopen`, and the name that others need, if any."""

    path: str
    name: str


_COPIES: StateSlot[Rank, dict[str, LoadedCopy]] = StateSlot(Rank, dict)
_GUARDS: StateSlot[Rank, object] = StateSlot(Rank)  # while ranks have them, faults are named


_seen: set[str] = set()  # files that are being examined: libraries may need each other


@cache
def _part(path: str) -> _Part | None:
    """The library in a file."""
    library = None if path in _seen else elf.read_library(path)
    if library is None:
        return None
    _seen.add(path)
    try:
        return _examined(path, library)
    finally:
        _seen.remove(path)


def _examined(path: str, library: elf.SharedLibrary) -> _Part:
    copied: dict[str, str] = {}
    shared: list[str] = []
    calls, opens = library.calls_mpi, False
    named: dict[str, str] = {}  # the names of libraries by the interfaces that they lead to
    for _, name in library.needed:
        if elf.MPI.match(name):
            named.setdefault(_interface_of(name), name)
            calls = True
            continue
        if SYSTEM.match(name):
            continue
        file = located(name, tuple(library.paths), os.path.dirname(path))
        if file is None:
            continue
        part = _part(file)
        if part is not None and part.needs_mpi:
            copied[name] = file
            opens = opens or part.opens_mpi
            if part.interface is not None:
                named.setdefault(part.interface, name)
        else:
            shared.append(file)
    why = elf.of_modules(library)
    if why is not None:
        raise CannotCopy(f"it {why}")
    if len(named) > 1:
        raise CannotCopy(
            "it needs two MPI libraries: " + " and ".join(map(_described, *zip(*named.items())))
        )
    opens = opens or plug_in(path) is not None
    needs = calls or bool(copied) or opens
    return _Part(library, needs, opens, next(iter(named), None), copied, tuple(shared))


def _interface_of(name: str) -> str:
    """The interface of an MPI library. Raises `CannotCopy` if pysmpi has none in its place."""
    try:
        found = interfaces.interface_of(name)
    except interfaces.UnservedError:
        found = None
    if found is None:
        raise CannotCopy(f"{name} has no counterpart in pysmpi")
    return found[0]


def _described(interface: str, name: str) -> str:
    return f"{interfaces.INTERFACES[interface].name} ({name})"


# The interface of the libraries of a program, and the first of these.
_CHOSEN: StateSlot[Universe, list[tuple[str, str]]] = StateSlot(Universe, list)
_LETTERS = {family.__name__: letter for letter, family in chapters.FAMILIES.items()}


def _choose(interface: str, name: str) -> None:
    """Give handles the form that a library expects.

    Raises `CannotCopy` if another library of the program expects another one.
    """
    chosen = _CHOSEN.of(current().universe)
    if not chosen:
        chosen.append((interface, name))
    elif chosen[0][0] != interface:
        raise CannotCopy(
            f"was compiled for {interfaces.INTERFACES[interface].name}, but "
            f"{_described(*chosen[0])} is in use: a program can use one MPI library only"
        )
    if interface in interfaces.VENDORS:
        VENDOR.put(current().universe, interfaces.VENDORS[interface])
    show_handles(interfaces.form_of(interface, engine.core(), _LETTERS))


def copy_for_rank(path: str) -> str:
    """The path of the copy of a library for the rank that runs, loaded with all that it needs.

    Raises `CannotCopy`, or `OSError` if the library cannot be loaded.
    """
    path = os.path.realpath(path)
    connection.start()
    if _GUARDS.peek(current()) is None:
        _GUARDS.put(current(), engine.watch())
    staging.begin()
    name = os.path.basename(path)
    if path == os.path.realpath(engine.__file__):
        _choose("mpich", name)
        return path
    if elf.MPI.match(name):  # it is an MPI library itself
        chosen = _CHOSEN.of(current().universe)
        if name == "libmpi.so" and chosen:  # without a version, it is the one that is in use
            ours = interfaces.INTERFACES[chosen[0][0]].c_library
        else:
            _choose(_interface_of(name), name)
            ours = elf.replacement(name) or name
        interfaces.attach({ours}, engine.core())
        return str(interfaces.file_of(ours))
    part = _part(path)
    if part is None:
        raise CannotCopy("it is no library for this system")
    if part.interface is not None:
        _choose(part.interface, name)
    elif not _CHOSEN.of(current().universe) and (part.library.calls_mpi or part.opens_mpi):
        _choose("mpich", name)  # it names no MPI library
    return _copy(path).path


def _copy(path: str) -> LoadedCopy:
    copies = _COPIES.of(current())
    copy = copies.get(path)
    if copy is not None:
        return copy
    part = _part(path)
    if part is None:
        raise CannotCopy("it is no library for this system")
    names = {name: _copy(file).name for name, file in part.copied.items()}
    for name, file in part.copied.items():
        if _part(file).library.soname is None:  # type: ignore[union-attr]
            raise CannotCopy(f"its library {name} has no name of its own (DT_SONAME)")
    load_all_shared(part.shared)
    copies[path] = copy = _load(part, names)
    return copy


# Copies whose symbols a library has made global: for the libraries that C code of the rank opens.
_GLOBAL: StateSlot[Rank, list[LoadedCopy]] = StateSlot(Rank, list)


def open_for_rank(name: int, everybody: int) -> int:
    """The address of the file to load for a library that C code opens; 0 if it is that of the name.

    `name` is the address of its name. An MPI library, and one that needs MPI, are the rank's.
    `everybody` says whether its symbols are for all libraries.
    """
    path = text(name)
    base = os.path.basename(path)
    for copy in _COPIES.of(current()).values():
        if copy.path == path:
            if everybody:
                _GLOBAL.of(current()).append(copy)
            return _kept_text(path)
    if elf.MPI.match(base):
        found: str | None = path
    elif os.sep in path and not path.startswith(_FOLDER):
        found = path if os.path.isfile(path) else None
    else:  # as the loader searches for it, and where libraries find their own folder
        folders = (os.path.dirname(each) for each in _COPIES.of(current()))
        found = located(base, tuple(folders), "")
    if found is None or not (elf.MPI.match(base) or chain_to_mpi(found) is not None):
        return 0
    try:
        file = copy_for_rank(found)
        made = _COPIES.of(current()).get(os.path.realpath(found))
        if everybody and made is not None:
            _GLOBAL.of(current()).append(made)
        return _kept_text(file)
    except (CannotCopy, OSError) as error:
        return _kept_text(f"{base}: {error}")  # no file: the loader's message has the reason


@cache
def _kept_text(text: str) -> int:
    """The address of a text that stays."""
    _texts.append(create_string_buffer(os.fsencode(text)))
    return addressof(_texts[-1])


_texts: list[Array[c_char]] = []
connection.openers.append(open_for_rank)
_loaded: list[str] = []


def load_all_shared(paths: Sequence[str]) -> None:
    """Load libraries of all ranks, in any order in which each finds what it needs."""
    pending = list(paths)
    while pending:
        missing: list[str] = []
        for path in pending:
            try:
                _load_shared(path)
            except OSError:
                # It may need another one of these, which its own path of search does not lead to.
                missing.append(path)
                if len(missing) == len(pending):
                    raise
        pending = missing


def _load_shared(path: str) -> None:
    """Load a library of all ranks, so that copies find it: their folder is another one."""
    if path not in _loaded:
        library = elf.read_library(path)
        if library is not None:
            for _, name in library.needed:
                file = located(name, tuple(library.paths), os.path.dirname(path))
                if file is not None and not SYSTEM.match(name):
                    _load_shared(file)
        engine.open(path, False)
        _loaded.append(path)


def _load(part: _Part, names: dict[str, str]) -> LoadedCopy:
    library = part.library
    own = short_name()
    needed = {name for _, name in library.needed}
    others = [copy.name for copy in dict.fromkeys(_GLOBAL.of(current())) if copy.name]
    replaced = dict(zip((name for name in _SPARE if name in needed), others))
    changes = changes_of(library, {**names, **replaced})
    if library.soname is not None:
        offset, name = library.soname
        changes.append((offset, own.encode().ljust(len(name), b"\0")))
    with closing(FileCopy(library, changes)) as copy:
        path = copy.path()
        try:
            base = engine.open(path)
        except OSError:
            if not library.calls_mpi:
                raise
            engine.export()  # it names no MPI library
            base = engine.open(path)
        copy.share(base)
    return LoadedCopy(path, "" if library.soname is None else own)


def changes_of(library: elf.SharedLibrary, names: dict[str, str]) -> list[tuple[int, bytes]]:
    """The bytes that change in a copy whose needed libraries have other names."""
    changes = list(library.changes)
    for offset, name in library.needed:
        if elf.MPI.match(name):
            ours = elf.replacement(name) or name
            interfaces.attach({ours}, engine.core())
            changes.append((offset, ours.encode().ljust(len(name), b"\0")))
        elif name in names:
            changes.append((offset, names[name].encode().ljust(len(name), b"\0")))
    return changes
