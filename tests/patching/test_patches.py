"""Patches of modules and classes, and the way back."""

from __future__ import annotations

import array
import os
import posix
import sys
import types
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches, is_module
from pysmpi.patching.replacing import Replacements, methods, replace_defaults

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.tuples(st.sampled_from(["set", "entry"]), NAMES, st.integers()), max_size=12)


@given(STEPS)
def test_undo_restores_everything_in_any_order_of_patches(
    steps: list[tuple[str, str, int]],
) -> None:
    module, mapping = types.ModuleType("m"), {"a": -1, "b": -2}
    module.a = module.c = -3  # type: ignore[attr-defined]
    before = dict(vars(module)), dict(mapping)
    patches = Patches()
    for kind, name, value in steps:
        if kind == "set":
            old = vars(module).get(name)
            assert patches.set(module, name, value) == old
            assert vars(module)[name] == value
        else:
            patches.entry(mapping, name, value)  # type: ignore[arg-type]
            assert mapping[name] == value
    patches.undo()
    assert (dict(vars(module)), mapping) == before
    patches.undo()
    assert (dict(vars(module)), mapping) == before


def test_calls_back_come_in_the_reverse_order() -> None:
    seen: list[int] = []
    patches = Patches()
    for number in range(3):
        patches.call_back(lambda number=number: seen.append(number))  # type: ignore[misc]
    patches.undo()
    assert seen == [2, 1, 0]


def test_a_module_that_is_imported_late_gets_the_functions_of_the_process() -> None:
    real, clock = os.stat, types.SimpleNamespace(now=lambda: 1)
    patches = Patches()
    own = clock.now
    for number in range(2):  # of two replacements, too
        patches.set(os, "stat", like(real, lambda *args, **kwargs: number))  # noqa: B023
        patches.set(clock, "now", like(own, lambda: 2))
    module = types.ModuleType("pysmpi.late")
    vars(module).update(_stat=os.stat, now=clock.now, other=len, text="stat", like=like)
    patches.give_real(module)
    assert vars(module)["_stat"] is real and vars(module)["now"] is own
    assert vars(module)["other"] is len and vars(module)["like"] is like
    patches.undo()
    assert os.stat is real and vars(module)["_stat"] is real


def test_a_function_of_os_is_replaced_in_its_home_and_keeps_its_abilities() -> None:
    real = os.stat
    assert real is posix.stat and real in os.supports_fd
    new = lambda *args, **kwargs: real(*args, **kwargs)  # noqa: E731
    patches = Patches()
    assert patches.set(os, "stat", new) is real
    assert posix.stat is os.stat is new
    able = [new in one for one in (os.supports_fd, os.supports_dir_fd, os.supports_effective_ids)]
    assert able == [True, True, False]
    patches.undo()
    assert posix.stat is os.stat is real
    assert new not in os.supports_fd | os.supports_dir_fd


def test_what_says_to_be_a_module_is_none() -> None:
    class Odd:
        @property
        def __class__(self) -> Any:
            raise RuntimeError

    assert is_module(os) and is_module(type("Own", (types.ModuleType,), {})("own"))
    assert not is_module(None) and not is_module(Odd())


def real(value: int = 1) -> int:
    return value


def holder() -> types.ModuleType:
    """A module that keeps `real` wherever programs do."""
    module: Any = types.ModuleType("holder")
    module.renamed = real

    class Keeps:
        kept = real

        def method(self, how: Callable[..., int] = real, *, key: Callable[..., int] = real) -> Any:
            return how, key, self.kept

    Keeps.__module__ = "holder"
    Foreign = type("Foreign", (), {"kept": real})

    def function(other: int = 2, how: Callable[..., int] = real) -> Any:
        return other, how

    module.Keeps, module.Foreign, module.function = Keeps, Foreign, function
    return module


def test_replacements_reach_names_classes_and_defaults() -> None:
    module = holder()
    home: Any = types.ModuleType("home")
    home.real = real
    patches = Patches()
    replacements = Replacements(patches)
    replacements.function(home, "real", lambda real: lambda value=1: -real(value))
    replacements.function(home, "no_such_function", lambda real: real)
    assert home.real(5) == -5 and not hasattr(home, "no_such_function")
    before = module.renamed, module.function(), module.Keeps().method()[:2]
    replacements.inside(module)
    new = home.real
    assert module.renamed is new and module.function() == (2, new)
    assert module.Keeps().method()[:2] == (new, new) and vars(module.Keeps)["kept"] is new
    assert vars(module.Foreign)["kept"] is real
    patches.undo()
    assert (module.renamed, module.function(), module.Keeps().method()[:2]) == before
    assert home.real is real and vars(module.Keeps)["kept"] is real


def test_every_module_that_holds_the_real_one_gets_the_replacement(monkeypatch: Any) -> None:
    def old() -> int:
        return 1

    module: Any = types.ModuleType("holder_of_a_test")
    module.renamed, module.other = old, print
    module.Keeps = type("Keeps", (), {"kept": old})  # of another module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    patches = Patches()
    replacements = Replacements(patches)
    home: Any = types.SimpleNamespace(old=old)
    replacements.function(home, "old", lambda real: lambda: real() + 6)
    replacements.everywhere()
    try:
        assert module.renamed is home.old and module.renamed() == 7
        assert vars(module.Keeps)["kept"] is old and module.other is print
    finally:
        patches.undo()
    assert module.renamed is home.old is old


def test_defaults_without_the_real_one_stay() -> None:
    def function(first: int = 1, *, second: int = 2) -> tuple[int, int]:
        return first, second

    defaults = function.__defaults__
    replace_defaults(Patches(), function, {id(real): real})
    assert function.__defaults__ is defaults and function() == (1, 2)


def test_methods_of_a_class_in_c_are_replaced_all_or_none() -> None:
    patches = Patches()
    old = array.array.tolist
    methods(patches, array.array, {"tolist": lambda self: "new", "no_such": lambda self: None})
    assert array.array("i", [1]).tolist() == [1]
    methods(patches, array.array, {"tolist": lambda self: "new"})
    assert array.array("i", [1]).tolist() == "new"
    patches.undo()
    assert array.array("i", [1]).tolist() == [1] and array.array.tolist is old
