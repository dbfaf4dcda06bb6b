"""Patches of libraries and of standard modules, which are made when these are loaded.

A library that ranks share may keep state of a process, wait in C, or ask the operating system for
the process. The patch that gives each rank its own view is one file, or a package, in
`pysmpi/patches/`, with the name of the library's top-level package. Its functions name modules:

```python
@when_loaded("zmq.sugar.poll")
def patch_poll(run: PatchedRun, module: ModuleType) -> None: ...
```

The file is imported when a program imports the library, or at the start of a run if the library is
loaded already. Each function is called once in a run, when its module has been loaded. Nothing else
refers to the file: without it, the library runs without the patch. Other distributions name their
files in the entry point group `pysmpi.patches`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds import contents
from pysmpi.isolation.kinds.c_state import CState
from pysmpi.isolation.kinds.registries import Registries
from pysmpi.isolation.kinds.thread_hooks import Hooks
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.threads.fibers import Threads
from pysmpi.patching.patches import Patches
from pysmpi.plugins import Registry


class PatchedRun:
    """The parts of a run that a patch may use.

    `patches` replaces attributes until the end of the run. `exchange` follows process states.
    `imports` loads modules. `hooks` exchanges tracing functions, `threads` has the pools of ranks;
    it is None if ranks start no simulated threads. `registries` separates dictionaries that
    functions change, `state_of_c` the state of the C library. `poll_cost` is the time (s) of a look
    at a clock.
    """

    def __init__(
        self,
        patches: Patches,
        exchange: Exchange,
        imports: ImportSystem,
        hooks: Hooks,
        threads: Threads | None,
        registries: Registries,
        state_of_c: CState,
        poll_cost: float,
    ) -> None:
        self.patches = patches
        self.exchange = exchange
        self.imports = imports
        self.hooks = hooks
        self.threads = threads
        self.registries = registries
        self.state_of_c = state_of_c
        self.poll_cost = poll_cost


Patch = Callable[[PatchedRun, Any], object]


class PatchedLibrary:
    """The patches of a library, by module, in the order in which they are made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = f"patches of {name}"
        self.functions: dict[str, list[Patch]] = {}
        self.containers: dict[str, tuple[str, ...]] = {}


LIBRARIES: Registry[PatchedLibrary] = Registry(
    "library with a patch", group="pysmpi.patches", home="pysmpi.patches", apart=True
)


def when_loaded(*modules: str) -> Callable[[Patch], Patch]:
    """Have a function called with the run and a module, once one of `modules` has been loaded."""

    def register(function: Patch) -> Patch:
        for module in modules:
            _library(module).functions.setdefault(module, []).append(function)
        return function

    return register


def containers(module: str, *paths: str) -> None:
    """Give each rank its own contents of dictionaries, lists and sets of a module.

    A path such as `Gcf.figs` begins at the module; `.*` at its end adds all dictionaries inside of
    the dictionary. A plus at the end marks a stack: each item holds a copy of the item below it,
    and additions.
    """
    _library(module).containers[module] = paths

    @when_loaded(module)
    def watch(run: PatchedRun, module: ModuleType) -> None:
        contents.watch(run.exchange, run.imports, module, paths)


_libraries: dict[str, PatchedLibrary] = {}


def _library(module: str) -> PatchedLibrary:
    name = module.partition(".")[0]
    library = _libraries.get(name)
    if library is None:
        library = _libraries[name] = LIBRARIES.add(PatchedLibrary(name))
    return library


def all_containers() -> dict[str, tuple[str, ...]]:
    """The containers of all libraries, by module."""
    return {module: paths for library in LIBRARIES for module, paths in library.containers.items()}


class LibraryPatches:
    """Makes the patches of one run."""

    def __init__(self, run: PatchedRun) -> None:
        self.run = run
        self.pending = set(LIBRARIES.candidates())
        for name in sorted(self.pending & run.exchange.table.keys()):
            self.announce(name)
        if self.pending:
            run.imports.announce.append(self.announce)

    def announce(self, name: str) -> None:
        """A module is about to be loaded: if it is a library with a patch, be ready for it."""
        if name in self.pending:
            self.pending.discard(name)
            for module, functions in LIBRARIES.find(name).functions.items():
                for function in functions:
                    self.run.imports.when_loaded(module, self._call(function))

    def _call(self, function: Patch) -> Callable[[ModuleType], object]:
        return lambda module: function(self.run, module)
