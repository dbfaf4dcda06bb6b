"""Searches in the names of modules: in C, and in Python where no compiler was."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from types import ModuleType
from typing import Any

import pytest

from pysmpi.python import holders

dictionary_search = pytest.importorskip(
    "pysmpi.python.dictionary_search", reason="pysmpi was installed without a C compiler"
)

BOTH = pytest.mark.parametrize(
    ("find", "same"),
    [
        (dictionary_search.find, dictionary_search.same),
        (holders.find_in_python, holders.same_in_python),
    ],
    ids=["C", "Python"],
)
KIND = type(_thread.allocate_lock())


def names_of(entries: list[holders.Entry]) -> list[tuple[int, str, int]]:
    return [(id(holder), name, id(value)) for holder, name, value in entries]


class Loud:
    """Objects that no search may compare."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def module() -> ModuleType:
    module = ModuleType("holding")
    source = """
        class Own:
            lock = None
            other = 1
        class Loose(int):
            pass
    """
    exec("if 1:\n" + source, vars(module))
    return module


@BOTH
def test_objects_are_found_by_identity(find: Any, same: Any, module: ModuleType) -> None:
    wanted, loud = [1], Loud()
    space: dict[str, object] = {"a": [1], "b": wanted, "c": loud, "d": 4, "e": wanted}
    assert names_of(find([{}, space], [wanted])) == names_of(
        [(space, "b", wanted), (space, "e", wanted)]
    )
    assert names_of(find([space], [loud, wanted]))[1] == (id(space), "c", id(loud))
    assert find([space], []) == []
    # More objects than a small table has slots, all next to each other in memory.
    many = [object() for _ in range(100)]
    space = {str(i): thing for i, thing in enumerate(many)}
    others = {str(i): object() for i in range(100)}
    assert [name for _, name, _ in find([others, space], many[::2])] == [*space][::2]
    # Without a class, the dictionaries of classes are left alone.
    vars(module)["Own"].other = wanted
    assert find([vars(module)], [wanted]) == []


@BOTH
def test_objects_of_a_class_are_found_in_modules_and_their_classes(
    find: Any, same: Any, module: ModuleType
) -> None:
    locks = [_thread.allocate_lock() for _ in range(5)]
    space = vars(module)
    space["lock"] = locks[0]
    space["Own"].lock = locks[1]
    foreign = type("Foreign", (), {"lock": locks[2], "__module__": "elsewhere"})
    meta = type("Meta", (type,), {"__module__": "elsewhere"})
    space["foreign"], space["made"] = foreign, meta("Made", (), {"__module__": "holding"})
    space["made"].lock = locks[3]
    space["Own"].also = wanted = [2]
    found = find([space], [wanted], KIND)
    own = space["Own"]
    assert sorted(names_of(found)) == sorted(
        names_of([(space, "lock", locks[0]), (own, "lock", locks[1]), (own, "also", wanted)])
    )
    # Without a name of its own, a dictionary has no classes.
    del space["__name__"]
    assert names_of(find([space], [], KIND)) == names_of([(space, "lock", locks[0])])


def test_only_dictionaries_are_searched() -> None:
    find, same = dictionary_search.find, dictionary_search.same
    with pytest.raises(TypeError, match="expected dictionaries, got int"):
        find([{}, 3], [time])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be list, not tuple"):
        find(({},), [time])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a dictionary or a class, got int"):
        same(3, {})  # type: ignore[arg-type]


@BOTH
def test_dictionaries_are_the_same_with_the_same_objects_in_the_same_order(
    find: Any, same: Any
) -> None:
    loud, big = Loud(), 10**6
    space = {"a": loud, "b": big}
    assert same(space, dict(space))
    assert same({}, {})
    other = int("1000000")
    assert other == big and other is not big
    for changed in (
        {"a": loud},
        {"b": big, "a": loud},
        {"a": loud, "b": other},
        {"a": loud, "c": big},
        {**space, "c": 1},
    ):
        assert not same(changed, space)
        assert not same(space, changed)

    class Kind:
        one = loud

    before = dict(vars(Kind))
    assert same(Kind, before)
    Kind.one = 2  # type: ignore[assignment]
    assert not same(Kind, before)
    assert same(int, dict(vars(int)))  # a class in C


def test_both_find_the_same_in_all_loaded_modules() -> None:
    spaces = [vars(module) for module in holders.modules()]
    wanted = [time.time, time.sleep, threading.Thread, sys, time]
    assert len(spaces) > 100
    for arguments in ([spaces, wanted], [spaces, [], KIND], [spaces, wanted, KIND]):
        one = names_of(dictionary_search.find(*arguments))  # type: ignore[arg-type]
        two = names_of(holders.find_in_python(*arguments))  # type: ignore[arg-type]
        assert sorted(one) == sorted(two)
        assert one
    for space in spaces[:200]:
        assert dictionary_search.same(space, dict(space))
        assert holders.same_in_python(space, dict(space))


def test_modules_are_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        pass

    monkeypatch.setitem(sys.modules, "lazy_of_this_test", Lazy("lazy_of_this_test"))
    monkeypatch.setitem(sys.modules, "none_of_this_test", None)
    names = {module.__name__ for module in holders.modules()}
    assert {"time", "threading"} <= names
    assert not names & {"lazy_of_this_test", "pysmpi", "pysmpi.python.holders"}
