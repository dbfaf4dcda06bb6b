"""The import system of a run: private modules are loaded once a rank, from shared code objects.

Three places of Python's import system are involved:

- a finder before all others decides which modules are private (by `rules.py`), finds and compiles
  each once, and hands every rank a loader that only executes the code;
- `__import__` brings `sys.modules` up to date for the rank that imports (see `view.py`), and
  notices shared packages that import mpi4py while they load: these become private;
- `_find_and_load`, which Python calls for modules that are not loaded yet, keeps the time of
  searching, compiling and loading libraries out of the rank's compute. The body of a private
  module is the program's own work and counts.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Callable
from importlib import _bootstrap
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from pysmpi.mpi import rank as ranks
from pysmpi.runtime.patches import Patches, disguise
from pysmpi.runtime.rules import Rules, is_extension
from pysmpi.runtime.view import ModuleView


class Stopwatch:
    """Whom the import system tells when time stops and goes on being the program's."""

    def pause(self) -> None:
        """Work that is not the program's begins; pauses may be nested."""

    def resume(self) -> None:
        """The pause that began last ends."""

    def release(self) -> int:
        """End all pauses for the program's own work; returns how many there were."""
        return 0

    def restore(self, pauses: int) -> None:
        """Begin the pauses again that `release` ended."""

    def elapsed(self) -> int:
        """What the block has taken so far (ns); 0 where no clock runs."""
        return 0

    def charge(self, nanoseconds: int) -> None:
        """Let the block take so much longer, if a clock runs."""


class PrivateLoader:
    """Loads one private module for any number of ranks, in place of the loader it wraps."""

    def __init__(self, loader: Any, imports: ImportSystem) -> None:
        self.loader = loader
        self._imports = imports
        self._code: CodeType | None = None
        self._compiles = hasattr(loader, "get_code")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def get_code(self, name: str) -> CodeType | None:
        """The code of the module, compiled once."""
        if self._code is None and self._compiles:
            rewriter = self._imports.rewriter
            if rewriter is not None and rewriter.concerns(name):
                get_source = getattr(self.loader, "get_source", lambda name: None)
                file = self.loader.get_filename(name)
                self._code = rewriter.compiled(name, get_source(name), file)
            if self._code is None:
                self._code = self.loader.get_code(name)
        return self._code

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self.loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        if module.__spec__ is not None and module.__spec__.submodule_search_locations is not None:
            # The specification is shared, a list that programs may append to should not be.
            module.__path__ = list(module.__path__)
        stopwatch = self._imports.stopwatch
        pauses = stopwatch.release()
        try:
            if code is None:
                self.loader.exec_module(module)
            else:
                # The frame by whose name Python knows what to leave out of tracebacks.
                _bootstrap._call_with_frames_removed(  # type: ignore[attr-defined]
                    exec, code, module.__dict__
                )
        finally:
            stopwatch.restore(pauses)

    disguise(exec_module)


class OneForAllLoader:
    """Gives every rank the same module, though each imports it.

    So the import has its usual effects in each rank: on the attributes of a private package, and
    `arrive`, which is called in each rank. The module is either given, or loaded by `loader` for
    the first rank that imports it.
    """

    def __init__(
        self,
        module: ModuleType | None = None,
        loader: Any = None,
        arrive: Callable[[], Any] | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.module = module
        self._loader = loader
        self._arrive = arrive
        self._stopwatch = Stopwatch() if stopwatch is None else stopwatch

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if self.module is None:
            self.module = self._loader.create_module(spec)
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        loader, self._loader = self._loader, None
        if loader is not None:
            loader.exec_module(module)
        if self._arrive is not None:
            # It may take part in the simulation: other ranks may run meanwhile.
            pauses = self._stopwatch.release()
            try:
                self._arrive()
            finally:
                self._stopwatch.restore(pauses)

    disguise(exec_module)


class _PrivatePart:
    """Descriptor: an attribute of a shared package that is a private module of each rank."""

    def __init__(self, view: ModuleView, name: str) -> None:
        self._view = view
        self._name = name

    def __get__(self, module: Any, owner: Any = None) -> Any:
        try:
            return self._view.current()[self._name]
        except KeyError:
            parent, _, child = self._name.rpartition(".")
            raise AttributeError(f"module {parent!r} has no attribute {child!r}") from None

    def __set__(self, module: Any, value: Any) -> None:
        """Nothing to keep: `sys.modules` of the rank has it."""

    def __delete__(self, module: Any) -> None:
        raise AttributeError(self._name)


class ImportSystem:
    """Python's import system while ranks run; also the finder at the head of `sys.meta_path`.

    `loaded` maps the name of a module to what is to be called when it was loaded, by whomever.
    """

    def __init__(self, rules: Rules, view: ModuleView, stopwatch: Stopwatch | None = None) -> None:
        self.rules = rules
        self.view = view
        self.stopwatch = Stopwatch() if stopwatch is None else stopwatch
        self.loaded: dict[str, Callable[[ModuleType], Any]] = {}
        self.rewriter: Any = None  # compiles modules of the program, see shadow/install.py
        self.given: dict[str, OneForAllLoader] = {}
        self._specs: dict[tuple[Any, ...], ModuleSpec] = {}
        self._first_turns: dict[str, int] = {}
        self._depth = 0
        self._patches = Patches()

    # Installing

    def install(self, patches: Patches) -> None:
        """Take over importing until the patches are undone."""
        self._patches = patches
        finders = list(sys.meta_path)
        patches.call_back(lambda: sys.meta_path.__setitem__(slice(None), finders))
        sys.meta_path.insert(0, self)
        patches.set(builtins, "__import__", self._make_import(builtins.__import__))
        patches.set(_bootstrap, "_find_and_load", self._make_find_and_load())

    def _make_import(self, original: Callable[..., Any]) -> Callable[..., Any]:
        current = ranks.current
        view = self.view

        def import_(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> Any:
            rank = current()
            if rank is not view.shown:
                view.show(rank)
            if not self._depth:
                return original(name, globals, locals, fromlist, level)
            if name.startswith("mpi4py"):
                # Before the import, as other ranks may run while it initializes MPI.
                self._notice(name, globals, fromlist, level)
                return original(name, globals, locals, fromlist, level)
            module = original(name, globals, locals, fromlist, level)
            self._notice(name, globals, fromlist, level)
            return module

        import_.__name__ = "__import__"
        return disguise(import_)

    def _make_find_and_load(self) -> Callable[..., Any]:
        original = _bootstrap._find_and_load  # type: ignore[attr-defined]
        table = self.view.table
        loaded = self.loaded

        def find_and_load(name: str, import_: Any) -> Any:
            self.view.current()
            if name in table:
                return original(name, import_)
            stopwatch = self.stopwatch
            stopwatch.pause()
            self._depth += 1
            try:
                module = original(name, import_)
            finally:
                self._depth -= 1
                stopwatch.resume()
            if name in loaded:
                loaded[name](module)
            return module

        return disguise(find_and_load)

    # Finding

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module as the other finders do, and see whether it is private."""
        given = self.given.get(name)
        if given is not None:
            origin = getattr(given.module, "__file__", None)
            spec = ModuleSpec(name, given, origin=origin)  # type: ignore[arg-type]
            self._belongs_to_rank(name)
            return spec
        key = (name, *(sys.path if path is None else path))
        known = self._specs.get(key)
        if known is not None:
            self._belongs_to_rank(name)
            return known
        found = self._ask_others(name, path, target)
        if found is None:
            return None
        spec = found
        if not self.rules.decide(name, spec):
            self.view.shared.add(name)
            self._first_turns.setdefault(name.partition(".")[0], self.view.turn)
            return spec
        if is_extension(spec):
            if name.rpartition(".")[0] not in self.view.private:
                self.view.shared.add(name)
                return spec
            self.given[name] = OneForAllLoader(loader=spec.loader)
            spec.loader = self.given[name]  # type: ignore[assignment]
        elif spec.loader is not None:
            spec.loader = PrivateLoader(spec.loader, self)  # type: ignore[assignment]
            self._specs[key] = spec
        self._belongs_to_rank(name)
        return spec

    def _ask_others(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec = find(name, path, target)
                if spec is not None:
                    return spec  # type: ignore[no-any-return]
        return None

    def invalidate_caches(self) -> None:
        """Forget where modules were found."""
        self._specs.clear()

    def _belongs_to_rank(self, name: str) -> None:
        """Note that `name` will be a private module of the rank that imports it."""
        view = self.view
        view.current()
        view.private.setdefault(name, None)
        parent = name.rpartition(".")[0]
        if parent in view.shared and parent in view.table:
            self._make_room(view.table[parent], name)

    def _make_room(self, parent: Any, name: str) -> None:
        """Let the attribute of a shared package be private that is the module `name`."""
        kind = type(parent)
        if "_private_parts" not in vars(kind):
            # A class for this module alone, since descriptors live in classes.
            original = kind
            kind = type(kind.__name__, (kind,), {"_private_parts": True})
            parent.__class__ = kind
            self._patches.call_back(lambda: setattr(parent, "__class__", original))
        setattr(kind, name.rpartition(".")[2], _PrivatePart(self.view, name))

    # Packages that import mpi4py

    def _notice(self, name: str, globals: Any, fromlist: Any, level: int) -> None:
        """Make the package private that imports something private while it loads."""
        if not globals:
            return
        importer = globals.get("__name__")
        spec = globals.get("__spec__")
        if importer not in self.view.shared or not getattr(spec, "_initializing", False):
            return
        rules = self.rules
        if rules.by_name(importer) is False or not rules.installed(spec.origin or ""):
            return
        if level:
            package = globals.get("__package__") or importer.rpartition(".")[0]
            name = importlib.util.resolve_name("." * level + name, package)
        if rules.knows_rank(name) or any(
            rules.knows_rank(f"{name}.{part}") for part in fromlist or ()
        ):
            self._make_private(importer)

    def _make_private(self, importer: str) -> None:
        """Make the package of module `importer` private, which is loading in this rank.

        If another rank may have seen the package already, only the module becomes so: what ranks
        hold of the rest they go on sharing.
        """
        view = self.view
        root = importer.partition(".")[0]
        alone = self._first_turns.get(root) == view.turn
        scope = root if alone else importer
        self.rules.found[scope] = True
        inside = scope + "."
        for name in [n for n in view.table if n == scope or n.startswith(inside)]:
            module = view.table[name]
            spec = getattr(module, "__spec__", None)
            if spec is not None and is_extension(spec):
                self.given[name] = OneForAllLoader(module)
            if name in view.shared:
                view.take(name)
        parent = scope.rpartition(".")[0]
        if parent in view.shared:
            self._make_room(view.table[parent], scope)
