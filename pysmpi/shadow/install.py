"""Replacing the program's functions by sampled ones, at import.

Functions of private modules are replaced in their source. Functions of shared modules are replaced
as attributes of the module, during the run.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.patching.patches import Patches
from pysmpi.shadow import source as sources

# Makes the replacement of a function; `constructor` is true for an `__init__`.
Replace = Callable[[Callable[..., object], bool], Callable[..., object]]

_OURS = ("mpi4py", "pysmpi", "builtins", "sys", "time", "importlib")


class Replacement:
    """One function to replace: `name` is `MODULE:PATH`, `option` the option that names it."""

    def __init__(self, name: str, option: str, replace: Replace, optional: bool = False) -> None:
        self.name = name
        self.optional = optional  # whether the program may lack it
        self.option = option
        self.module, _, self.path = name.partition(":")
        self.replace = replace
        self.met = False  # whether the program has loaded it
        if self.module.partition(".")[0] in _OURS:
            raise UsageError(
                f"{option} {name}: cannot replace a function of {self.module}, "
                "expected one of the program or of a library that it uses"
            )


class Installer:
    """Replaces functions in one run."""

    def __init__(self, replacements: list[Replacement]) -> None:
        self._by_name: dict[str, Replacement] = {}
        self._by_module: dict[str, list[Replacement]] = {}
        for one in replacements:
            if one.name in self._by_name:
                raise UsageError(
                    f"{one.option} {one.name}: named before by {self._by_name[one.name].option}, "
                    "expected each function once"
                )
            self._by_name[one.name] = one
            self._by_module.setdefault(one.module, []).append(one)
        # Called with the name and tree of every module of the program that is compiled.
        self.visit: Callable[[str, ast.Module], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether there are functions to replace."""
        return bool(self._by_module) or self.visit is not None

    def concerns(self, module: str) -> bool:
        """Whether functions of `module` are replaced in its source."""
        return self.visit is not None or module in self._by_module

    def compiled(
        self, module: str, source: str | bytes | None, file: str, optimize: int = -1
    ) -> CodeType | None:
        """The code of a module with its functions replaced; None if it has no source.

        Raises `UsageError` if a module with named functions has no source.
        """
        mine = self._by_module.get(module, ())
        if source is None:
            one = next(iter(mine), None)
            if one is None:
                return None
            raise UsageError(f"{one.option} {one.name}: {file} comes without source, expected it")
        tree = ast.parse(source, file)
        for one in mine:
            one.met = True
            sources.replace(tree, module, {one.path: one.name}, one.option)
        if self.visit is not None:
            self.visit(module, tree)
        code: CodeType = compile(tree, file, "exec", dont_inherit=True, optimize=optimize)
        return code

    def add(self, replacement: Replacement) -> None:
        """Add a function; its source will be compiled next."""
        self._by_name[replacement.name] = replacement

    def install(self, patches: Patches, imports: ImportSystem, exchange: Exchange) -> None:
        """Replace functions of shared modules now or when they are loaded."""
        patches.set(builtins, sources.HOOK, self._decorator)
        imports.rewriter = self
        for name, mine in self._by_module.items():
            if name in exchange.table and name in exchange.shared:
                self._replace_in(exchange.table[name], mine, patches)
                continue
            before = imports.loaded.get(name)

            def loaded(module: ModuleType, mine: Any = mine, before: Any = before) -> None:
                if before is not None:
                    before(module)
                if module.__name__ in exchange.shared:
                    self._replace_in(module, mine, patches)

            imports.loaded[name] = loaded

    def _decorator(self, place: str) -> Callable[[object], object]:
        replace = self._by_name[place].replace

        def decorate(function: Any) -> object:
            constructor = getattr(function, "__name__", "") == "__init__"
            return replace(function, constructor)

        return decorate

    def _replace_in(self, module: ModuleType, mine: list[Replacement], patches: Patches) -> None:
        for one in mine:
            one.met = True
            place = _owner(module, one)
            if place is None:
                continue
            owner, name = place
            found = inspect.getattr_static(owner, name)
            constructor = name == "__init__"
            if inspect.isclass(found):
                owner, name, constructor = found, "__init__", True
                found = vars(found).get("__init__")
            function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            if not callable(function):
                raise UsageError(f"{one.option} {one.name}: no function of its own is there")
            if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
                raise UsageError(
                    f"{one.option} {one.name}: expected a function, got a generator or coroutine"
                )
            new: Any = one.replace(function, constructor)
            if type(function) is not FunctionType and not inspect.isclass(owner):
                new = Stand(new, function)
            if isinstance(found, staticmethod | classmethod):
                new = type(found)(new)
            try:
                patches.set(owner, name, new)
            except TypeError:
                raise UsageError(
                    f"{one.option} {one.name}: cannot replace a method of a compiled class"
                ) from None


class Stand:
    """Replaces a callable that is not a Python function, such as a ufunc, and looks like it."""

    def __init__(self, replacement: Callable[..., object], original: object) -> None:
        self._replacement = replacement
        self._original = original

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._replacement(*args, **kwargs)

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        return self._original.__reduce__()


def _owner(module: ModuleType, one: Replacement) -> tuple[Any, str] | None:
    """The object and the name of its attribute that a replacement names; None for an option."""
    owner: object = module
    *parents, name = one.path.split(".")
    for parent in parents:
        owner = getattr(owner, parent, None)
    if owner is None or not hasattr(owner, name):
        if one.optional:
            return None
        raise UsageError(f"{one.option} {one.name}: no {one.path} in module {one.module}")
    return owner, name


def put_back(place: str, function: object, replaced: object) -> None:
    """Restore the function that `replaced` replaces: its calls then have no overhead."""
    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    namespace = getattr(function, "__globals__", None)
    owner: object = None
    if namespace is not None and module == namespace.get("__name__"):
        # The module of the rank that is running.
        owner = namespace.get(parents[0]) if parents else namespace
    elif not parents:
        owner = getattr(sys.modules.get(module), "__dict__", None)
    if isinstance(owner, dict):
        found = owner.get(name)
        if found is replaced or getattr(found, "_replacement", None) is replaced:
            owner[name] = function
    elif isinstance(owner, type) and vars(owner).get(name) is replaced and len(parents) == 1:
        setattr(owner, name, function)


def like(function: Callable[..., object], new: Callable[..., object]) -> Callable[..., Any]:
    """`new` with the name, signature and attributes of `function`, as far as it has them."""
    try:
        return functools.wraps(function)(new)
    except (AttributeError, TypeError):
        return new
