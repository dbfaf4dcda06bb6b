"""The exchange of names when another rank continues, against a model of it."""

from __future__ import annotations

import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.versions import NoVersions, Versions

VERSIONS = [NoVersions, Versions]  # without and with version numbers of dictionaries
NAMES = st.sampled_from(["a", "b", "c", "d"])


ACTIONS = st.sampled_from(["set", "put", "delete", "read", "share", "hide"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), ACTIONS, NAMES), max_size=40), st.sampled_from(VERSIONS)
)
def test_the_exchange_shows_each_rank_what_it_did(steps, versions):
    """Against a model: a dictionary of modules for each rank, and one of shared modules."""
    table = {"base": types.ModuleType("base")}
    states = [State(number) for number in range(3)]
    model = [{}, {}, {}]
    hidden = [set(), set(), set()]
    shared = dict(table)
    exchange = Exchange(table, {}, versions)
    for index, action, name in steps:
        exchange.show(states[index])
        part = "base." + name
        if action == "set":
            model[index][name] = table[name] = types.ModuleType(name)
        elif action == "put":
            model[index][name] = types.ModuleType(name)
            exchange.put_own(name, model[index][name])
        elif action == "delete":
            table.pop(name, None)
            model[index].pop(name, None)
        elif action == "share" and part not in shared:
            shared[part] = table[part] = types.ModuleType(part)
        elif action == "hide":
            if table.pop(part, None) is not None:
                hidden[index].add(part)
        expected = {n: m for n, m in shared.items() if n not in hidden[index]}
        exchange.show(exchange.outside)
        exchange.show(states[index])
        assert table == {**expected, **model[index]}
    exchange.close()
    assert table == shared


STEPS = st.tuples(st.integers(0, 2), st.sampled_from(["one", "two", "new"]), st.integers(0, 3))


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(VERSIONS))
def test_each_rank_has_its_own_values_of_names(steps, versions):
    """Value 0 stands for a name that is deleted."""
    space = {"one": 1, "two": 2, "other": 3}
    first = dict(space)
    exchange = Exchange({}, {}, versions)
    exchange.watch(space, "one")
    exchange.watch(space, "two", lambda owner, common: common + owner)
    exchange.watch_new(space)
    states = [State(number) for number in range(3)]
    model = [{**space, "two": 2 + number} for number in range(3)]
    for index, name, value in steps:
        exchange.show(states[index])
        assert space == model[index]
        if value:
            space[name] = model[index][name] = value
        else:
            space.pop(name, None)
            model[index].pop(name, None)
    for index, state in enumerate(states):
        exchange.show(state)
        assert space == model[index]
    exchange.close()
    assert space == first


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_list_that_a_rank_changes_in_place_becomes_its_own(versions):
    space = {"items": [1, 2]}
    exchange = Exchange({}, {}, versions)
    exchange.watch_list(space, "items")
    first, second = State(0), State(1)
    for turn in range(3):
        exchange.show(first)
        space["items"].append(turn)
        exchange.show(second)
        assert space["items"] == [1, 2]
    exchange.show(first)
    assert space["items"] == [1, 2, 0, 1, 2]


@pytest.mark.parametrize("versions", VERSIONS)
def test_ranks_share_the_latest_list_of_the_caller(versions):
    space = {"items": [1, 2]}
    exchange = Exchange({}, {}, versions)
    exchange.watch_list(space, "items")
    second, third = State(0), State(1)
    exchange.show(second)
    exchange.show(exchange.outside)
    space["items"] = [5]
    exchange.show(second)
    exchange.show(exchange.outside)
    space["items"].append(6)
    exchange.show(second)
    assert space["items"] == [5, 6]
    space["items"].append(7)
    exchange.show(third)
    assert space["items"] == [5, 6]
    exchange.show(second)
    assert space["items"] == [5, 6, 7]
    exchange.close()
    assert space["items"] == [5, 6]


def test_a_rank_deletes_the_module_that_it_has_in_place_of_a_shared_one():
    common, own = types.ModuleType("base"), [types.ModuleType("base") for _ in range(2)]
    table = {"base": common}
    exchange, states = Exchange(table, {}, Versions), [State(0), State(1)]
    for state, module in zip(states, own):
        exchange.show(state)
        table["base"] = module
    exchange.show(states[0])
    exchange.show(states[1])  # from here on both are known to have modules of the same names
    exchange.show(states[0])
    del table["base"]
    for _ in range(2):
        exchange.show(states[1])
        assert table == {"base": own[1]}
        exchange.show(states[0])
        assert table == {}
    exchange.show(exchange.outside)
    assert table == {"base": common}


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_module_that_one_of_two_ranks_with_the_same_modules_imports_is_its_own(versions):
    table = {"base": types.ModuleType("base")}
    base, modules = dict(table), [types.ModuleType("y") for _ in range(2)]
    exchange, states = Exchange(table, {}, versions), [State(0), State(1)]
    for _ in range(2):  # then both are known to have modules of the same names
        for state, module in zip(states, modules):
            exchange.show(state)
            table["y"] = module
    exchange.modules.belongs_to_rank("x")
    table["x"] = added = types.ModuleType("x")
    for _ in range(2):
        exchange.show(states[0])
        assert table == {**base, "y": modules[0]}
        exchange.show(states[1])
        assert table == {**base, "y": modules[1], "x": added}
