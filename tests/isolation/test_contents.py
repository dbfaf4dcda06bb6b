"""The contents of containers, of which each rank has its own."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.contents import Contents
from pysmpi.isolation.versions import NoVersions, Versions


def refuse(*arguments):
    raise AssertionError("a method of the class was called")


class Loud(dict):
    """A dictionary whose methods must not be called, as they may have effects."""

    __iter__ = __getitem__ = __setitem__ = __eq__ = __ne__ = keys = items = update = refuse


def put(thing, value):
    if isinstance(thing, Loud):
        dict.__setitem__(thing, value, None)
    elif isinstance(thing, dict):
        thing[value] = None
    elif isinstance(thing, list):
        thing.append(value)
    else:
        thing.add(value)


def inside(thing):
    return sorted(dict.keys(thing) if isinstance(thing, dict) else thing)


@pytest.mark.parametrize("way", [NoVersions, Versions])
@pytest.mark.parametrize("kind", [dict, Loud, OrderedDict, list, set])
def test_each_rank_has_its_own_contents(kind, way):
    thing = kind()
    exchange = Exchange({}, {}, way)
    exchange.follow(Contents(exchange, "thing", thing))
    states = [State(number) for number in range(3)]
    expected = [[], [], []]
    for turn, number in enumerate([0, 1, 2, 0, 2, 1, 1, 0]):
        exchange.show(states[number])
        assert inside(thing) == expected[number]
        if number < 2:
            put(thing, turn)
            expected[number].append(turn)
    exchange.show(exchange.outside)
    assert inside(thing) == []
