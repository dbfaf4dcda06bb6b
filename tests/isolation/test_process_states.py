"""The protocol of whatever a process has once, against a model: a dictionary for each rank."""

from __future__ import annotations

import random

import pytest

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.state import Accessed, PolledSetting, ProcessState, SharedParts


class Table(SharedParts):
    """A dictionary of the process in which ranks change a few entries."""

    name = "table"

    def __init__(self, exchange, table):
        super().__init__(exchange)
        self.table = table

    def put(self, key, value):
        self.table[key] = value

    def set(self, key, value):
        common = self.table[key]
        self.table[key] = value
        self.note(key, common, value)


class Log(ProcessState):
    """Records what the exchange asks of it."""

    polled = True

    def __init__(self, exchange, name, log, last=False):
        super().__init__(exchange)
        self.name, self.log, self.after_others = name, log, last

    def initial(self, state):
        return state

    def differs(self):
        return True

    def record(self, state):
        self.log.append(f"capture {self.name}")

    def install(self, value):
        self.log.append(f"install {self.name}")


@pytest.mark.parametrize("kind", ["noticed", "polled", "parts"])
@pytest.mark.parametrize("seed", range(3))
def test_each_rank_has_its_own_value(kind, seed):
    process = {"level": 0, "other": 0}
    exchange = Exchange({}, {})
    states = [State(number) for number in range(3)]

    def put(value):
        process["level"] = value

    if kind == "noticed":
        setting = Accessed(exchange, "level", lambda: process["level"], put)
        change = lambda value: setting.change(put, value)  # noqa: E731
    elif kind == "polled":
        exchange.follow(PolledSetting(exchange, "level", lambda: process["level"], put))
        change = put
    else:
        table = Table(exchange, process)
        change = lambda value: table.set("level", value)  # noqa: E731
    own: dict[int, int] = {}
    draw = random.Random(seed)
    for step in range(1, 60):
        rank = draw.randrange(3)
        exchange.show(states[rank])
        assert process["level"] == own.get(rank, 0)
        if draw.random() < 0.5:
            change(step)
            own[rank] = step
    exchange.close()
    assert process == {"level": 0, "other": 0}


def test_all_are_captured_before_any_is_installed():
    """So no state reads what the exchange of another one has written."""
    exchange = Exchange({}, {})
    log: list[str] = []
    for name, last in (("a", True), ("b", False), ("c", False)):
        exchange.follow(Log(exchange, name, log, last))
    exchange.show(State(0))
    assert log == [
        "capture b", "capture c", "capture a", "install b", "install c", "install a",
    ]  # fmt: skip


def test_a_state_that_no_rank_has_changed_is_not_exchanged():
    exchange = Exchange({}, {})
    reads = []
    setting = Accessed(exchange, "level", lambda: reads.append(1), reads.append)
    exchange.show(State(0))
    exchange.show(State(1))
    assert not exchange.follows(setting.name)
    assert reads == []


def test_the_end_of_a_rank_releases_its_values():
    exchange = Exchange({}, {})
    level = [0]
    put = lambda value: level.__setitem__(0, value)  # noqa: E731
    setting = Accessed(exchange, "level", lambda: level[0], put)
    state = State(0)
    exchange.show(state)
    setting.change(setting.write, 7)
    exchange.forget(state)
    assert level == [0]
    assert not state.own
    assert exchange.shown is exchange.outside
