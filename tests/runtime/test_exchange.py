"""The exchange of names when another rank continues, against a model of it."""

from __future__ import annotations

import types

from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.runtime.process.exchange import Exchange, State
from pysmpi.runtime.process.versions import version_of

NAMES = st.sampled_from(["a", "b", "c", "d"])


ACTIONS = st.sampled_from(["set", "put", "delete", "read", "share", "hide"])


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), ACTIONS, NAMES), max_size=40), st.booleans())
def test_the_exchange_shows_each_rank_what_it_did(steps, versions):
    """Against a model: a dictionary of modules for each rank, and one of shared modules."""
    table = {"base": types.ModuleType("base")}
    states = [State(number) for number in range(3)]
    model = [{}, {}, {}]
    hidden = [set(), set(), set()]
    shared = dict(table)
    exchange = Exchange(table, {}, version_of if versions else None)
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
            if not versions:  # then only the number of entries shows a change
                exchange.collect()
            if table.pop(part, None) is not None:
                hidden[index].add(part)
        expected = {n: m for n, m in shared.items() if n not in hidden[index]}
        exchange.show(exchange.outside)
        exchange.show(states[index])
        assert table == {**expected, **model[index]}
    exchange.close()
    assert table == shared


STEPS = st.tuples(st.integers(0, 2), st.sampled_from(["one", "two", "new"]), st.integers(0, 3))


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from([None, version_of]))
def test_each_rank_has_its_own_values_of_names(steps, version_of):
    """Value 0 stands for a name that is deleted."""
    space = {"one": 1, "two": 2, "other": 3}
    first = dict(space)
    exchange = Exchange({}, {}, version_of)
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
