"""Registries of shared modules to which ranks add entries: `copyreg`, `csv`, `sqlite3`, `abc`...

Each has functions that change it. When a rank calls one of them for the first time, the contents of
the registry become separate for each rank; until then it costs nothing.
"""

from __future__ import annotations

import abc
import codecs
import copyreg
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.contents import Contents
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.state import Parts, ProcessState
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

_codecs: Any = importlib.import_module("_codecs")
_register, _unregister = codecs.register, codecs.unregister
_low: Any = importlib.import_module("_abc")


class Registries:
    """The registries that ranks have changed."""

    def __init__(self, exchange: Exchange, imports: Any) -> None:
        self.exchange = exchange
        self.imports = imports

    def concerns_rank(self) -> bool:
        """Whether a registration is one of a rank, and not of a shared module."""
        return here() is not None and not self.imports.importing_shared

    def separate(self, name: str, thing: object) -> None:
        """Exchange the contents of a dictionary or list from now on."""
        if not self.exchange.follows(name) and isinstance(thing, dict | list):
            contents = Contents(self.exchange, name, thing)
            contents.follow()
            self.imports.begin_shared.append(contents.begin_shared)
            self.imports.end_shared.append(contents.end_shared)

    def patch(
        self,
        patches: Patches,
        module: Any,
        names: Iterable[str],
        registries: Callable[[], dict[str, Any]],
    ) -> None:
        """Let functions of a module change registries of the running rank."""
        for name in names:
            real = getattr(module, name, None)
            if real is not None:
                patches.set(module, name, like(real, self._changing(real, registries)))

    def _changing(
        self, real: Callable[..., Any], registries: Callable[[], dict[str, Any]]
    ) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            if self.concerns_rank():
                for name, thing in registries().items():
                    self.separate(name, thing)
            return real(*args, **kwargs)

        return change


def dictionaries(module: ModuleType, *names: str) -> Callable[[], dict[str, Any]]:
    """The registries with these names in a module."""
    return lambda: {
        f"{module.__name__}.{name}": vars(module)[name] for name in names if name in vars(module)
    }


class VirtualSubclasses(Parts):
    """The classes that ranks have registered with abstract base classes of shared modules."""

    name = "virtual subclasses"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.register = _low._abc_register

    def note(self, cls: type, subclass: type) -> None:
        """The running rank has registered a class."""
        self.own()[cls, subclass] = None

    def install(self, value: dict[tuple[type, type], None]) -> None:
        before = self.shown
        for cls, subclass in before:
            if (cls, subclass) not in value:
                self._remove(cls, subclass)
        for cls, subclass in value:
            if (cls, subclass) not in before:
                self.register(cls, subclass)

    def _remove(self, cls: Any, subclass: type) -> None:
        others = [found() for found in _low._get_dump(cls)[0]]
        _low._reset_registry(cls)
        for base in cls.__mro__:
            if isinstance(base, abc.ABCMeta):
                _low._reset_caches(base)
        for other in others:
            if other is not None and other is not subclass:
                self.register(cls, other)


class Codecs(ProcessState):
    """The search functions for codecs that ranks have registered, and their error handlers."""

    name = "codecs"
    common: Sequence[Any] = ()
    shown: Sequence[Any] = ()

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.errors: dict[str, dict[State, Any]] = {}  # by name, for each rank that has one

    def note(self, function: object, added: bool) -> None:
        """The running rank has registered a search function, or removed it."""
        state = self.exchange.shown
        self.follow()
        own = list(state.own.get(self.name, ()))
        if added:
            own.append(function)
        elif function in own:
            own.remove(function)
        self.shown = own
        state.keep(self.name, own)

    def install(self, value: Sequence[Any]) -> None:
        """Exchange the functions; Python forgets the codecs that it has found."""
        for function in self.shown:
            _unregister(function)
        for function in value:
            _register(function)

    def forget(self, state: State) -> None:
        """Forget the handlers of a rank that has ended."""
        for own in self.errors.values():
            own.pop(state, None)

    def replace_functions(self, patches: Patches, registries: Registries) -> None:
        """Let ranks register codecs and handlers of their own."""
        real_add, real_remove = _codecs.register, _codecs.unregister
        real_error, real_look = _codecs.register_error, _codecs.lookup_error

        def register(search_function: Any, /) -> None:
            real_add(search_function)
            if registries.concerns_rank():
                self.note(search_function, True)

        def unregister(search_function: Any, /) -> None:
            real_remove(search_function)
            if registries.concerns_rank():
                self.note(search_function, False)

        def register_error(errors: str, handler: Any, /) -> None:
            if not (registries.concerns_rank() and callable(handler) and type(errors) is str):
                real_error(errors, handler)
                return
            if errors not in self.errors:
                self.errors[errors] = {}
                real_error(errors, self._dispatcher(errors, real_look))
            state = self.exchange.shown
            self.errors[errors][state] = handler
            if self.name not in state.own:
                state.keep(self.name, ())  # to be forgotten with it
                self.follow()

        def lookup_error(errors: str, /) -> Any:
            own = self.errors.get(errors)
            if own is None:
                return real_look(errors)
            return own.get(self.exchange.shown) or real_look(errors).common(errors)

        new: dict[str, Callable[..., Any]] = {
            "register": register, "unregister": unregister, "register_error": register_error,
            "lookup_error": lookup_error,
        }  # fmt: skip
        for name, function in new.items():
            patches.set(codecs, name, like(getattr(_codecs, name), function))

    def _dispatcher(self, errors: str, look: Callable[[str], Any]) -> Any:
        try:
            before = look(errors)
        except LookupError:
            before = None

        def common(name: str) -> Any:
            if before is None:
                raise LookupError(f"unknown error handler name '{name}'")
            return before

        def handle(error: Exception) -> Any:
            handler = self.errors.get(errors, {}).get(self.exchange.shown)
            return (common(errors) if handler is None else handler)(error)

        vars(handle)["common"] = common
        return handle


def _patch_hooks(patches: Patches, registries: Registries) -> None:
    """Let the hooks of audits and of forks concern the rank that has added them."""
    real_audit, real_fork = sys.addaudithook, getattr(os, "register_at_fork", None)

    # Python keeps the hooks to its end; after the run they must keep nothing of its ranks.
    hooks: dict[int, tuple[object, Callable[..., object]]] = {}
    patches.call_back(hooks.clear)

    def for_rank(function: Callable[..., object]) -> Callable[..., object]:
        number = len(hooks)
        hooks[number] = here(), function

        def call(*args: object) -> object:
            owner, hook = hooks.get(number, (None, None))
            return hook(*args) if hook is not None and here() is owner else None

        return call

    def addaudithook(hook: Callable[..., object]) -> None:
        # Hooks cannot be removed, so those of ranks stay, without an effect, after the run.
        real_audit(for_rank(hook) if registries.concerns_rank() else hook)

    def register_at_fork(**functions: Callable[[], object]) -> None:
        assert real_fork is not None
        if registries.concerns_rank():
            functions = {when: for_rank(function) for when, function in functions.items()}
        real_fork(**functions)

    patches.set(sys, "addaudithook", like(real_audit, addaudithook))
    if real_fork is not None:
        patches.set(os, "register_at_fork", like(real_fork, register_at_fork))


def install(patches: Patches, registries: Registries) -> None:
    """Give every rank its own entries in registries until the patches are undone."""
    tables = dictionaries(copyreg, "dispatch_table")
    registries.patch(patches, copyreg, ("pickle", "constructor"), tables)
    tables = dictionaries(copyreg, "_extension_registry", "_inverted_registry", "_extension_cache")
    registries.patch(patches, copyreg, ("add_extension", "remove_extension"), tables)
    _patch_hooks(patches, registries)
    Codecs(registries.exchange).replace_functions(patches, registries)
    subclasses = VirtualSubclasses(registries.exchange)
    real: Any = vars(abc).get("_abc_register")
    if real is not None:

        def _abc_register(cls: Any, subclass: Any) -> Any:
            new = registries.concerns_rank() and cls.__module__ in registries.exchange.shared
            known = new and any(one() is subclass for one in _low._get_dump(cls)[0])
            answer = real(cls, subclass)
            if new and not known:
                subclasses.note(cls, subclass)
            return answer

        patches.set(abc, "_abc_register", like(real, _abc_register))
