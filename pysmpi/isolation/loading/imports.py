"""The import system of a run: private modules are loaded once for each rank, from shared code.

Finders, loaders and specifications remain Python's own, including those that the program installs.
The following functions of `importlib._bootstrap` are replaced:

- `_find_spec` returns the location of a module, from any finder; here `rules.py` decides whether
  the module is private to the rank;
- `exec_module` of loaders of Python code takes the code of a private module from the rank that
  loaded it first; extension modules are loaded once for all ranks, but those that call MPI;
- `_find_and_load`, which Python calls for modules that are not loaded yet, keeps the time of
  searching, compiling and loading libraries out of the rank's compute. The body of a private
  module is the program's own work and counts.
"""

from __future__ import annotations

import copy
import sys
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import _bootstrap, _bootstrap_external
from importlib.machinery import (
    ExtensionFileLoader,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.isolation.assumptions import KNOWN_SHARED
from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.assigned import Assigned, Borrowed
from pysmpi.isolation.loading.own_code import OwnCode
from pysmpi.isolation.loading.rules import Rules
from pysmpi.isolation.rank_state import MISSING
from pysmpi.isolation.threads.locks import running, wait
from pysmpi.mpi.base import ranks
from pysmpi.patching.patches import Patches, disguise, is_module
from pysmpi.python import facts
from pysmpi.time.stopwatch import Stopwatch

_bootstrap_: Any = _bootstrap
REPLACED = ("_lock_unlock_module", "_find_spec", "_find_and_load")  # functions of it
_PLAIN = (SourceFileLoader, SourcelessFileLoader)


class GivenLoader:
    """Gives every rank the same module, though each imports it and `arrive` is called in each.

    So the import has its usual effects in each rank.
    """

    def __init__(
        self,
        module: ModuleType,
        arrive: Callable[[], object],
        stopwatch: Stopwatch,
    ) -> None:
        self.module = module
        self._arrive = arrive
        self._stopwatch = stopwatch
        self.imported = False  # by some rank, in Python's own way

    def spec(self, name: str) -> ModuleSpec:
        """The specification of the module, as a search for it gives it."""
        origin = getattr(self.module, "__file__", None)
        spec = ModuleSpec(name, self, origin=origin)  # type: ignore[arg-type]
        path = getattr(self.module, "__path__", None)
        if path is not None:
            spec.submodule_search_locations = list(path)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # It may take part in the simulation: other ranks may run meanwhile.
        pauses = self._stopwatch.release()
        try:
            self._arrive()
        finally:
            self._stopwatch.restore(pauses)
        self.imported = True

    disguise(exec_module)


class OwnWork(NamedTuple):
    """The state before a rank executes a module, which the end of the execution restores."""

    key: Any
    pauses: int
    shared: int


class ImportSystem:
    """Python's import system while ranks run.

    `loaded` maps the name of a module to a function that is called when any rank has loaded it.
    The functions in `announce` are called with the name of a module that a rank has not loaded yet.
    `begin_shared` and `end_shared` are called around the import of a shared module.
    """

    def __init__(
        self, rules: Rules, exchange: Exchange, stopwatch: Stopwatch | None = None
    ) -> None:
        self.rules = rules
        self.exchange = exchange
        self.stopwatch = Stopwatch() if stopwatch is None else stopwatch
        self.loaded: dict[str, Callable[[ModuleType], Any]] = {}
        self.announce: list[Callable[[str], object]] = []
        self.at_end: list[Callable[[State], object]] = []  # called at the end of each rank
        # Whether each rank loads the extension module in a file for itself.
        self.is_own: Callable[[str], bool] = lambda path: False
        # Is in effect while an extension module of the running rank is loaded.
        self.own_registries: Callable[[], AbstractContextManager[None]] = nullcontext
        self.rewriter: Any = None  # compiles modules of the program, see shadow/install.py
        self.own_code: OwnCode | None = None  # None if ranks share code
        self.given: dict[str, GivenLoader] = {}
        self._give_real: Callable[[ModuleType], object] = id
        self.assigned = Assigned(exchange)
        self.begin_own: list[Callable[[CodeType], object]] = []  # before a module of a rank
        self.begin_shared: list[Callable[[], object]] = [self.assigned.begin_shared]
        self.end_shared: list[Callable[[], object]] = [self.assigned.end_shared]
        self._depths: dict[int, int] = {}  # of imports of shared modules, of states
        self._importers: dict[object, object] = {}  # fibers that are executing a module, by key
        self._awaited: dict[object, object] = {}  # by fiber, its module
        self._waiting: dict[Any, deque[Any]] = {}  # for a module, by key
        self._specs: dict[tuple[object, ...], ModuleSpec] = {}
        self._codes: dict[tuple[object, ...], CodeType | None] = {}
        self._extensions: dict[tuple[str, str | None], ModuleType] = {}
        self._executed: set[int] = set()  # extension modules
        self._brought: dict[int, dict[str, ModuleType]] = {}  # modules that each of them has made
        self._finders: list[object] = []  # the usual ones
        # Import hooks of shared modules: the list in `sys`, the hook, whether it comes first.
        self._hooks: list[tuple[str, object, bool]] = []
        self._given_hooks: dict[int, int] = {}  # how many of them states have
        self._borrowed: dict[int, Borrowed] = {}

    @property
    def importing_shared(self) -> int:
        """The number of shared modules that the running rank is importing."""
        return self._depths.get(id(self.exchange.shown), 0)

    @importing_shared.setter
    def importing_shared(self, depth: int) -> None:
        if depth:
            self._depths[id(self.exchange.shown)] = depth
        else:
            self._depths.pop(id(self.exchange.shown), None)

    def when_loaded(self, name: str, call: Callable[[ModuleType], object]) -> None:
        """Have `call` called with a module: now, or when a rank has loaded it.

        Functions for one module are called in the order in which they are given here.
        """
        module = self.exchange.table.get(name)
        if module is not None:
            call(module)
            return
        before = self.loaded.get(name)

        def loaded(module: ModuleType) -> None:
            if before is not None:
                before(module)
            call(module)

        self.loaded[name] = call if before is None else loaded

    def install(self, patches: Patches) -> None:
        """Take over importing until the patches are undone."""
        if not facts.holds("imports"):
            version = ".".join(map(str, sys.version_info[:3]))
            raise UsageError(
                f"Python {version} imports modules in another way than Python 3.11 to 3.14: "
                f"{facts.false_facts()['imports']}"
            )
        self._give_real = patches.give_real
        _, find, load = (getattr(_bootstrap, name) for name in REPLACED)
        new = self._waiter(), self._finder(find), self._loader(load)
        for name, function in zip(REPLACED, new, strict=True):
            patches.set(_bootstrap, name, function)
        basics: Any = _bootstrap_external._LoaderBasics  # type: ignore[attr-defined]
        patches.set(basics, "exec_module", self._executor(basics.exec_module))
        kind = ExtensionFileLoader
        patches.set(kind, "create_module", self._extension_maker(kind.create_module))
        patches.set(kind, "exec_module", self._extension_executor(kind.exec_module))
        patches.call_back(self._keep_hooks)

    # Finding

    def _finder(self, original: Callable[..., Any]) -> Callable[..., Any]:
        finders = self._finders = list(sys.meta_path)

        def _find_spec(name: str, path: Any, target: Any = None) -> ModuleSpec | None:
            given = self.given.get(name)
            if given is not None:
                self._belongs_to_rank(name)
                return given.spec(name)
            if self._hooks:
                self._give_hooks()
            # The answer of the program's own finders is not known.
            usual = sys.meta_path == finders
            key = (name, *(sys.path if path is None else path))
            known = self._specs.get(key) if usual else None
            if known is not None:
                self._belongs_to_rank(name)
                return _own(known)
            spec: ModuleSpec | None = original(name, path, target)
            if spec is None:
                return None
            if not self.rules.decide(name, spec, self.importing_shared > 0):
                self.exchange.modules.belongs_to_all(name)
                return spec
            if usual and type(spec.loader) in _PLAIN:
                self._specs[key] = _own(spec)
            self._belongs_to_rank(name)
            return spec

        return disguise(_find_spec)

    def _give_hooks(self) -> None:
        """Add the import hooks of shared modules to those of the rank that imports."""
        state = id(self.exchange.shown)
        given = self._given_hooks.get(state, 0)
        if given == len(self._hooks):
            return
        self._given_hooks[state] = len(self._hooks)
        for name, hook, first in self._hooks[given:]:
            _add_hook(vars(sys)[name], hook, first)

    def _keep_hooks(self) -> None:
        """Let the caller of the run have the hooks of shared modules, which stay loaded.

        A later run, or the caller, imports modules that only they provide.
        """
        for name, hook, first in self._hooks:
            _add_hook(vars(sys)[name], hook, first)

    def _note_hooks(self, before: dict[str, list[object]]) -> None:
        """Remember the import hooks that a shared module has added.

        Modules that it provides through them are imported by other ranks, too.
        """
        for name, old in before.items():
            known = [*old, *(hook for where, hook, _ in self._hooks if where == name)]
            for place, hook in enumerate(vars(sys)[name]):
                if not any(hook is one for one in known):
                    self._hooks.append((name, hook, place == 0))
                    if name == "meta_path":
                        _add_hook(self._finders, hook, place == 0)

    def _belongs_to_rank(self, name: str) -> None:
        """Note that `name` will be a private module of the rank that imports it."""
        exchange = self.exchange
        exchange.modules.belongs_to_rank(name)
        parent, _, child = name.rpartition(".")
        common = parent in exchange.shared or parent in self.given
        module = exchange.table.get(parent) if common else None
        if is_module(module):
            # The shared package has it as an attribute, a different one for each rank.
            exchange.watch(vars(module), child)

    # Loading

    def _key(self, name: str) -> object:
        """Tells the shared module `name` from the private ones of the states."""
        shown = self.exchange.shown
        return (id(shown), name) if name in shown.modules else name

    def _waiter(self) -> Callable[[str], None]:
        """Called by Python before it uses a module that is still being imported.

        Its locks see all ranks and their threads as one thread: another one would get a partial
        module.
        """
        original = _bootstrap_._lock_unlock_module

        def _lock_unlock_module(name: str) -> None:
            if self._is_elsewhere(name):
                self._await(name)
            else:
                original(name)

        return disguise(_lock_unlock_module)

    def _is_elsewhere(self, name: str) -> bool:
        """Whether another rank, or another thread of this one, is executing a module."""
        importer = self._importers.get(self._key(name))
        return importer is not None and importer is not running()

    def _await(self, name: str) -> None:
        """Wait until another fiber has executed a module.

        Two fibers that need each other's modules would wait for ever: one of them gets the module
        as it is, as in Python, and as in a circular import of one thread.
        """
        fiber: object = running()
        key = self._key(name)
        if not isinstance(fiber, ranks.Fiber) or self._is_circular(key, fiber):
            self.exchange.modules.end_partial(name)
            return
        self._awaited[fiber] = key
        pauses = self.stopwatch.release()
        try:
            while key in self._importers:
                wait(self._waiting.setdefault(key, deque()), -1)
        finally:
            del self._awaited[fiber]
            self.stopwatch.restore(pauses)

    def _is_circular(self, key: object, fiber: object) -> bool:
        """Whether the importer of a module waits, through others, for a module of this fiber."""
        seen = set()
        while key is not None and key not in seen:
            seen.add(key)
            importer = self._importers.get(key)
            if importer is fiber:
                return True
            key = self._awaited.get(importer)
        return False

    def _begin(self, name: str) -> Any:
        """Note that the running fiber executes a module; the module's key."""
        key = self._key(name)
        self._importers[key] = running()
        return key

    def _end(self, key: object) -> None:
        self._importers.pop(key, None)
        for fiber in self._waiting.pop(key, ()):
            fiber.wake()

    def _loader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        table = self.exchange.table
        exchange = self.exchange
        loaded = self.loaded

        def _find_and_load(name: str, import_: object) -> Any:
            if name in table:
                return original(name, import_)
            if self._is_elsewhere(name):
                self._await(name)
                if name in table:
                    return original(name, import_)
            for announce in self.announce:
                announce(name)
            stopwatch = self.stopwatch
            stopwatch.pause()
            try:
                module = self._given_again(name) or original(name, import_)
            finally:
                stopwatch.resume()
                if name in exchange.shared and exchange.shared[name] is not table.get(name):
                    exchange.collect()
            if name in loaded:
                loaded[name](module)
            return module

        return disguise(_find_and_load)

    def _given_again(self, name: str) -> ModuleType | None:
        """Import a given module in a further rank: Python need not look for it again.

        None if it is no such module.
        """
        given = self.given.get(name)
        if given is None or not given.imported:
            return None
        table = self.exchange.table
        parent, _, child = name.rpartition(".")
        package = table.get(parent)
        if parent and package is None:
            return None
        module = given.module
        self.exchange.put_own(name, module)
        try:
            given.exec_module(module)
        except BaseException:
            table.pop(name, None)
            raise
        if parent:
            setattr(package, child, module)
        return module

    def _executor(self, original: Callable[..., Any]) -> Callable[..., object]:
        """Executes the code of a module."""

        def exec_module(loader: object, module: ModuleType) -> None:
            name = module.__name__
            if name not in self.exchange.shown.modules:
                self._execute_shared(original, loader, module)
                return
            code = self._code(loader, name)
            for begin in self.begin_own:
                begin(code)
            if self.own_code is not None:
                code = self.own_code.of(code)
            work = self._begin_own(name)
            try:
                # Python removes frames with this name from tracebacks.
                _bootstrap_._call_with_frames_removed(exec, code, module.__dict__)
            finally:
                self._end_own(work)

        return disguise(exec_module)

    # The body of a module is work of the program. These are two functions, since a traceback of the
    # program must have no frame between its own and those that Python removes.

    def _begin_own(self, name: str) -> OwnWork:
        """The running rank executes a module of its own."""
        pauses = self.stopwatch.release()
        shared, self.importing_shared = self.importing_shared, 0
        return OwnWork(self._begin(name), pauses, shared)

    def _end_own(self, work: OwnWork) -> None:
        """The module is executed."""
        self._end(work.key)
        self.importing_shared = work.shared
        self.stopwatch.restore(work.pauses)

    def _execute_shared(
        self, original: Callable[..., object], loader: object, module: ModuleType
    ) -> None:
        """Execute a shared module; its changes of the process apply to all ranks."""
        name = module.__name__
        outermost = self.importing_shared == 0
        self.importing_shared += 1
        owner = self.exchange.shown.owner
        if owner is not None:
            owner.importing += 1
        key = self._begin(name)
        hides = key == name
        if hides:
            self.exchange.modules.begin_partial(name)
        if outermost:
            for begin in self.begin_shared:
                begin()
        hooks = {which: list(vars(sys)[which]) for which in ("meta_path", "path_hooks")}
        try:
            original(loader, module)
            self._note_hooks(hooks)
            root = name.partition(".")[0]
            if root == "pysmpi":
                self._give_real(module)
            elif root not in KNOWN_SHARED and root not in sys.stdlib_module_names:
                self.assigned.watch(module)
        except BaseException:
            self.exchange.shared[name] = MISSING  # no rank must find a part of it
            raise
        finally:
            if hides:
                self.exchange.modules.end_partial(name)
            self._end(key)
            self.importing_shared -= 1
            if owner is not None:
                owner.importing -= 1
            if outermost:
                for end in list(self.end_shared):
                    end()

    def _code(self, loader: Any, name: str) -> CodeType:
        """The code of a private module, compiled once."""
        rewriter = self.rewriter
        rewritten = rewriter is not None and rewriter.concerns(name)
        if type(loader) not in _PLAIN:
            code = self._rewritten(loader, name) if rewritten else None
            code = loader.get_code(name) if code is None else code
            return self._known(code, name)
        path = loader.get_filename(name)
        try:
            stats = loader.path_stats(path)
            key: tuple[Any, ...] = (name, path, stats.get("mtime"), stats.get("size"))
        except (AttributeError, OSError):
            key = (name, path)
        result = self._codes.get(key)
        if result is None:
            result = self._rewritten(loader, name) if rewritten else None
            result = self._known(loader.get_code(name) if result is None else result, name)
            self._codes[key] = result
        return result

    def _rewritten(self, loader: Any, name: str) -> CodeType | None:
        get_source = getattr(loader, "get_source", lambda name: None)
        code: CodeType | None = self.rewriter.compiled(
            name, get_source(name), loader.get_filename(name)
        )
        return code

    @staticmethod
    def _known(code: CodeType | None, name: str) -> CodeType:
        if code is None:
            raise ImportError(f"cannot load module {name!r} when get_code() returns None")
        return code

    def _extension_maker(self, original: Callable[..., Any]) -> Callable[..., object]:
        def create_module(loader: object, spec: ModuleSpec) -> ModuleType:
            if spec.origin is not None and self.is_own(spec.origin):
                with self.own_registries():
                    own: ModuleType = original(loader, spec)
                return own
            key = (spec.name, spec.origin)
            module = self._extensions.get(key)
            if module is None:
                before = set(self.exchange.table)
                module = self._extensions[key] = original(loader, spec)
                # A module with one phase of initialization is executed here.
                self._brought[id(module)] = self._made_since(before, spec.name)
            return module

        return disguise(create_module)

    def _extension_executor(self, original: Callable[..., object]) -> Callable[..., object]:
        def exec_module(loader: object, module: ModuleType) -> None:
            table = self.exchange.table
            spec: Any = module.__spec__
            if spec.origin is not None and self.is_own(spec.origin):
                work = self._begin_own(module.__name__)
                before = set(table)
                try:
                    with self.own_registries():
                        original(loader, module)
                finally:
                    self._end_own(work)
                for name in set(table) - before:  # C code has made modules
                    self._belongs_to_rank(name)
                return
            brought = self._brought.setdefault(id(module), {})
            if id(module) not in self._executed:
                before = set(table)
                self._execute_shared(original, loader, module)
                self._executed.add(id(module))
                brought.update(self._made_since(before, spec.name))
                if module.__name__ in self.exchange.shown.modules:
                    self._borrowed[id(module)] = Borrowed(self.exchange, module)
                return
            for name, child in brought.items():
                if name not in table:
                    self._belongs_to_rank(name)
                    table[name] = child
            borrowed = self._borrowed.get(id(module))
            if borrowed is not None:
                borrowed.give()

        return disguise(exec_module)

    def _made_since(self, before: set[str], name: str) -> dict[str, ModuleType]:
        """The modules that C code of extension module `name` has made (`PyImport_AddModule`).

        Those of a module that is loaded once for all ranks are for all ranks, too.
        """
        exchange = self.exchange
        result = {
            child: module
            for child, module in list(exchange.table.items())
            if child not in before
            and child != name
            and is_module(module)
            and vars(module).get("__spec__") is None
        }
        if name not in exchange.shown.modules:
            for child, module in result.items():
                if child not in exchange.shown.modules:
                    exchange.shared.setdefault(child, module)
        return result


def _add_hook(hooks: list[object], hook: object, first: bool) -> None:
    if not any(hook is one for one in hooks):
        hooks.insert(0 if first else len(hooks), hook)


def _own(spec: ModuleSpec) -> ModuleSpec:
    """A copy of a specification: importing changes it, and programs append to its list."""
    mine = copy.copy(spec)
    places = spec.submodule_search_locations
    if type(places) is list:
        mine.submodule_search_locations = list(places)
    return mine
