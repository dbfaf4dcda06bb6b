"""Which dictionaries have changed, against their contents."""

from __future__ import annotations

import gc
import shutil
import sysconfig
import weakref
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.isolation.versions import NoVersions, Versions

COMPILER = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
compiled = pytest.mark.skipif(
    Versions is NoVersions and COMPILER is None, reason="there is no C compiler"
)
CHANGES = st.sampled_from(["set", "delete", "clear", "update", "none"])


def change(space, kind, value):
    if kind == "set":
        space["a"] = value
    elif kind == "delete":
        space.pop("a", None)
    elif kind == "clear":
        space.clear()
    elif kind == "update":
        space.update(b=value, c=value)


def changed(versions):
    """The numbers of all dictionaries that have changed since the last look."""
    found = []
    number = versions.next_changed(0)
    while number >= 0:
        found.append(number)
        number = versions.next_changed(number + 1)
    return found


@compiled
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), CHANGES), max_size=3), max_size=8))
def test_dictionaries_that_have_changed_are_found_once(rounds):
    spaces = [{}, {"a": 0}, dict.fromkeys("abc")]
    versions = Versions()
    assert [versions.add(space) for space in spaces] == [0, 1, 2]
    assert changed(versions) == [0, 1, 2]
    for value, steps in enumerate(rounds):
        before = [dict(space) for space in spaces]
        touched = set()
        for number, kind in steps:
            change(spaces[number], kind, f"value {value}")
            if kind != "none":
                touched.add(number)
        differ = {n for n in range(3) if spaces[n] != before[n]}
        assert all(versions.differs(number) for number in differ)
        found = changed(versions)
        assert differ <= set(found) <= touched
        assert changed(versions) == []


@compiled
def test_a_version_is_noted():
    space, versions = {}, Versions()
    versions.add(space)
    versions.note(0)
    assert not versions.differs(0)
    space["a"] = 1
    assert versions.differs(0)
    versions.note(0)
    assert versions.next_changed(0) == -1


def test_without_versions_each_dictionary_counts_as_changed():
    versions = NoVersions()
    assert [versions.add({}), versions.add({})] == [0, 1]
    versions.note(0)
    assert versions.differs(0)
    assert changed(versions) == changed(versions) == [0, 1]


@compiled
def test_wrong_arguments():
    versions = Versions()
    with pytest.raises(TypeError, match="expected a dictionary, got list"):
        versions.add([])
    for call in (versions.note, versions.differs):
        with pytest.raises(IndexError):
            call(0)
    with pytest.raises(IndexError):
        versions.next_changed(-1)
    with pytest.raises(TypeError):
        versions.note("0")


@compiled
def test_dictionaries_of_several_objects():
    space, other = {}, {}
    first, second, third = Versions(), Versions(), Versions()
    for versions in (first, second, third):
        versions.add(other)
        versions.add(space)
        assert changed(versions) == [0, 1]
    del versions, second  # it is between the others
    space["a"] = 1
    assert changed(first) == changed(third) == [1]
    del third
    space["a"] = 2
    assert changed(first) == [1]
    again = Versions()
    again.add(space)
    del first
    assert changed(again) == [0]
    assert changed(again) == []
    space["a"] = 3
    assert changed(again) == [0]


@compiled
def test_a_dictionary_twice():
    space, versions = {}, Versions()
    assert [versions.add(space), versions.add(space)] == [0, 1]
    assert changed(versions) == [0, 1]
    space["a"] = 1
    assert changed(versions) == [0, 1]


@compiled
def test_attributes_and_globals():
    class Plain:
        pass

    holder, module = Plain(), ModuleType("module")
    holder.name = 0
    versions = Versions()
    versions.add(vars(holder))
    versions.add(vars(module))
    code = compile("name = 0\ndef store(value):\n global name\n name = value", "module", "exec")
    exec(code, vars(module))
    changed(versions)
    for value in range(1, 100):  # the interpreter adapts its instructions meanwhile
        holder.name = value
        assert 0 in changed(versions)
        vars(module)["store"](value)
        assert 1 in changed(versions)
        assert 1 not in changed(versions)
        module.name = -value
        assert 1 in changed(versions)
    del holder.name
    assert 0 in changed(versions)


@compiled
def test_a_cycle_through_versions_is_freed():
    class Space(dict):
        pass

    space, versions = Space(), Versions()
    space["versions"] = versions
    versions.add(space)
    alive = weakref.ref(space)
    del space, versions
    gc.collect()
    assert alive() is None
