"""Send, receive and barrier on caches: the findings of the paper; chain and simulation agree."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from flag_primitive import program as flag_program

from pysmpi.coherence.study import study
from pysmpi.errors import UsageError
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives import (
    Program,
    Variable,
    acquire,
    enter,
    fetch_and_add,
    leave,
    load,
    mark,
    program,
    release,
    start,
    store,
)
from pysmpi.memory.primitives.placement import at_distance, latencies, parse_mapping

pytestmark = pytest.mark.slow  # scipy solves the chains

FAME = latencies("fame")


def found(name, table="FAME-A", far=0, transfers="atomic", processes=2, settings=None, **options):
    made = program(name, settings or {}) if isinstance(name, str) else name
    return study(made, protocol(table), at_distance(processes, far), FAME, transfers, **options)


@pytest.fixture(scope="module")
def cases():
    """Each primitive under each protocol at each distance, by (protocol, primitive)."""
    return {
        (table, name): [found(name, table, far) for far in range(3)]
        for table in ("FAME-A", "FAME-B", "FAME-B-store")
        for name in ("sr1", "sr2")
    }


def shares(figures):
    return {kind: value / figures.total for kind, value in figures.by_kind.items()}


def test_latency_rises_with_distance(cases):
    for studies in cases.values():
        times = [each.solved.latency for each in studies]
        assert times == sorted(times) and len(set(times)) == 3


def test_protocol_a_beats_b_at_every_distance(cases):
    for name in ("sr1", "sr2"):
        for a, b in zip(cases["FAME-A", name], cases["FAME-B", name]):
            assert a.solved.latency < b.solved.latency
            assert a.solved.total < b.solved.total


def test_the_printed_table_of_protocol_b_does_not_tell_them_apart_in_sr2(cases):
    for a, b in zip(cases["FAME-A", "sr2"], cases["FAME-B-store", "sr2"]):
        assert a.solved.latency == pytest.approx(b.solved.latency, rel=1e-9)
    for a, b in zip(cases["FAME-A", "sr1"], cases["FAME-B-store", "sr1"]):
        assert a.solved.latency < b.solved.latency


def test_sr2_beats_sr1_at_every_distance(cases):
    for table in ("FAME-A", "FAME-B"):
        for one, two in zip(cases[table, "sr1"], cases[table, "sr2"]):
            assert two.solved.latency < one.solved.latency


def test_misses_of_sr1_are_the_papers(cases):
    for each in cases["FAME-A", "sr1"]:
        assert each.solved.total == pytest.approx(20, abs=0.5)
        share = shares(each.solved)
        assert share["packet"] == pytest.approx(0.20, abs=0.02)
        assert share["pointer"] == pytest.approx(0.45, abs=0.06)
        assert share["lock"] == pytest.approx(0.35, abs=0.06)


def test_misses_of_sr1_with_two_phases_are_nearer_to_the_papers():
    for settings, total in (({}, 19), ({"fifo": "true"}, 21)):
        solved = found("sr1", far=1, transfers="two-phase", settings=settings).solved
        share = shares(solved)
        assert solved.total == pytest.approx(total, abs=0.3)
        assert share["packet"] == pytest.approx(0.20, abs=0.02)
        assert share["pointer"] == pytest.approx(0.45, abs=0.035)
        assert share["lock"] == pytest.approx(0.35, abs=0.025)


def test_sr1_that_looks_before_it_locks_has_fewer_misses():
    looking = found("sr1", settings={"look": "true"})
    assert looking.ok
    assert looking.solved.total == pytest.approx(17, abs=0.05)
    assert looking.solved.by_kind["lock"] == pytest.approx(5, abs=0.05)


def test_misses_of_sr2_are_the_papers(cases):
    for each in cases["FAME-A", "sr2"]:
        assert each.solved.total == pytest.approx(12, abs=0.01)
        share = shares(each.solved)
        assert share["packet"] == pytest.approx(0.32, abs=0.02)
        assert share["index"] == pytest.approx(0.68, abs=0.02)


@pytest.mark.parametrize("memory, added, hit", [(0.4, 1.0, 1e-9), (2.5, 2.0, 60e-9)])
def test_the_order_does_not_hang_on_the_assumed_latencies(memory, added, hit):
    rows = []
    for row in FAME.distances:
        memory_time = row["cache"] * memory
        slow = memory_time * added
        rows.append({**row, "memory": memory_time, "lookup": slow, "invalidation": slow})
    priced = replace(FAME, distances=tuple(rows), hit=hit)
    times = {
        (table, name): study(
            program(name), protocol(f"FAME-{table}"), at_distance(2, 1), priced
        ).solved.latency
        for table in "AB"
        for name in ("sr1", "sr2")
    }
    for name in ("sr1", "sr2"):
        assert times["A", name] < times["B", name]
    for table in "AB":
        assert times[table, "sr2"] < times[table, "sr1"]


def test_a_message_costs_both_processes_the_same(cases):
    for studies in cases.values():
        for each in studies:
            by = [sum(miss.by_process[i] for miss in each.solved.misses) for i in (0, 1)]
            assert by[0] == pytest.approx(by[1], rel=1e-6)


@pytest.mark.parametrize("transfers", ["atomic", "two-phase"])
@pytest.mark.parametrize(
    "name, settings, turns",
    [
        ("sr1", {"fifo": "yes"}, 200),
        ("sr2", {"packets": "2"}, 200),
        ("sr2", {"packets": "2", "streaming": "yes"}, 400),
        ("barrier-central", {}, 4000),
        ("barrier-dissemination", {}, 4000),
    ],
)
def test_chain_and_simulation_agree(name, settings, turns, transfers):
    each = found(name, "FAME-B", 1, transfers, settings=settings, turns=turns, seed=4)
    assert each.ok
    solved, simulated = each.solved, each.simulated
    assert simulated.error < 0.1 * solved.latency
    assert abs(solved.latency - simulated.latency) < simulated.error
    assert simulated.total == pytest.approx(solved.total, rel=0.05)
    for one, other in zip(solved.misses, simulated.misses):
        assert one.variable == other.variable
        assert one.total == pytest.approx(other.total, rel=0.2, abs=0.1)


def test_a_simulation_repeats():
    runs = [found("sr2", turns=40, seed=seed, solve=False).simulated for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", ["sr1", "sr2"])
def test_the_bandwidth_of_a_stream(name):
    """Messages overlap if there are packets for it; longer packets carry more for each miss."""

    def bandwidth(packets, lines, table="FAME-A"):
        settings = {"streaming": "yes", "packets": str(packets), "lines": str(lines)}
        each = found(name, table, settings=settings)
        assert each.ok and each.bytes == 128 * lines
        assert each.as_json()["solved"]["bandwidth"] == each.bandwidth(each.solved)
        return each.bandwidth(each.solved)

    one, two, long = bandwidth(1, 1), bandwidth(2, 1), bandwidth(2, 4)
    assert one < two < long < 4 * two
    assert bandwidth(2, 1, "FAME-B") < two
    # At most one message is on its way in a ping-pong.
    still = found(name)
    assert still.bandwidth(still.solved) == pytest.approx(128 / still.solved.latency)
    assert still.bandwidth(still.solved) < two


def test_a_stream_by_hand():
    """A sender that never waits: its only miss is a line that the receiver has read."""
    flag = Variable("flag", 0, "flag", 0)

    def sender():
        value = 0
        while True:
            yield start()
            yield store(flag, value)
            value = 1 - value

    alone = Program("alone", [flag], [sender], lines=3)
    each = found(alone, processes=1)
    assert each.solved.latency == pytest.approx(FAME.hit)
    assert each.bandwidth(each.solved) == pytest.approx(3 * 128 / FAME.hit)


def test_a_stream_that_loses_messages_is_no_queue():
    """The sender overwrites a message before the receiver has read it."""
    from pysmpi.memory.primitives.programs.benchmarks import receives, sends, stream

    slot = Variable("slot", None, "packet", 0)

    def send(me, message, mine):
        yield mark(sends(me, message))
        yield store(slot, message)

    def receive(me, mine):
        while (message := (yield load(slot))) is None:
            pass
        yield mark(receives(me, message))
        yield store(slot, None)

    broken = stream("broken", "", [slot], dict, send, receive, packets=2)
    checks = {check.name: check for check in found(broken).checks}
    assert not checks["equivalence with the specification"].holds


@pytest.mark.parametrize("kind", ["barrier-central", "barrier-dissemination"])
def test_a_barrier_of_three(kind):
    two = found(kind, far=1)
    three = found(kind, far=1, processes=3, settings={"processes": "3"})
    assert two.ok and three.ok
    assert three.solved.latency > two.solved.latency
    assert three.unit == "barrier"


def test_a_farther_process_costs_more():
    near, far = (
        study(
            program("barrier-central", {"processes": "3"}), protocol("MESI"),
            parse_mapping(text), FAME,
        ).solved.latency
        for text in ("0.0.0,0.0.1,0.0.2", "0.0.0,0.0.1,1.0.0")
    )  # fmt: skip
    assert near < far


def test_where_a_variable_is_matters():
    """A packet is written by the process that owns it: best where its memory is near to that."""
    own = found("sr2", far=2).solved
    swapped = {"header[0.*]": 1, "header[1.*]": 0, "payload[0.*]": 1, "payload[1.*]": 0}
    other = found("sr2", far=2, homes=swapped).solved
    assert other.latency > own.latency
    assert other.total == pytest.approx(own.total)
    assert own.transfers["invalidation/0"] == pytest.approx(2)
    assert "invalidation/0" not in other.transfers


def test_the_chain_of_two_flags_is_known():
    """One process writes, the other waits and writes back: every figure can be computed by hand."""
    flags = [Variable(f"flag[{i}]", 0, "flag", i) for i in (0, 1)]

    def process(me):
        value = 1 if me == 0 else 0
        while True:
            yield start()
            if me == 1:
                value = 1 - value
                while (yield load(flags[1])) != value:
                    pass
                yield store(flags[0], value)
            else:
                yield store(flags[1], value)
                while (yield load(flags[0])) != value:
                    pass
                value = 1 - value

    made = Program("flags", flags, [lambda: process(0), lambda: process(1)], messages=2)
    solved = found(made, "FAME-A").solved
    # A store finds the line E at the other (invalidation), a load finds it M there (cache).
    assert solved.transfers["invalidation/0"] == pytest.approx(1)
    assert solved.transfers["cache/0"] == pytest.approx(1)
    # While one begins its store, the other is polling (a), or still busy with its own store (b).
    # (a): the end of a poll, 9 ns, and the load that misses, 200 ns; (b): the rest of the store,
    # 200 ns, and the load. Then the first is still busy with probability p or q.
    p = 1 / (1 + 9 / 200) * 1 / 2
    q = 1 / 4
    b = p / (1 - q + p)
    assert solved.latency == pytest.approx(((1 - b) * 209 + b * 400) * 1e-9, rel=1e-6)


def broken_lock():
    """Two processes count under a lock that they do not take at once: look, then set."""
    lock = Variable("lock", 0, "lock", 0)
    counter = Variable("counter", 0, "counter", 0)

    def process():
        while True:
            yield start()
            while (yield load(lock)):
                pass
            yield store(lock, 1)
            yield enter("lock")
            yield load(counter)
            yield leave("lock")
            yield store(lock, 0)

    return Program("broken", [lock, counter], [process, process])


def test_a_lock_that_does_not_exclude_is_caught():
    each = found(broken_lock())
    assert not each.ok and each.solved is None
    failed = [check for check in each.checks if not check.holds]
    assert [check.name for check in failed] == ["mutual exclusion"]
    assert failed[0].detail.startswith("processes 0 and 1 are both in lock: process 0 at ")
    assert "test_primitives.py:" in failed[0].detail


def test_a_deadlock_is_caught():
    one, two = Variable("one", 0, "lock", 0), Variable("two", 0, "lock", 1)

    def process(first, second):
        while True:
            yield start()
            yield from acquire(first)
            yield from acquire(second)
            yield from release(second)
            yield from release(first)

    made = Program("crossed", [one, two], [lambda: process(one, two), lambda: process(two, one)])
    failed = [check for check in found(made).checks if not check.holds]
    assert [check.name for check in failed] == ["no deadlock or livelock"]
    assert failed[0].detail.endswith("one = 1, two = 1")
    assert failed[0].detail.count("test_primitives.py:") == 2


def test_a_message_taken_twice_is_caught():
    assert found(flag_program()).ok
    failed = [check for check in found(flag_program(takes=2)).checks if not check.holds]
    assert [check.name for check in failed] == ["equivalence with the specification"]
    assert failed[0].detail == "it does not allow: sends, receives, receives"


def test_what_is_allowed_but_never_offered_is_caught():
    made = flag_program()
    wanted = {0: {"sends": 1, "rests": 0}, 1: {"receives": 0}}
    made = Program(made.name, made.variables, made.processes, specification=wanted)
    failed = [check for check in found(made).checks if not check.holds]
    assert [check.name for check in failed] == ["equivalence with the specification"]
    assert "no longer" in failed[0].detail


def test_loops_are_told_apart_by_what_is_on_the_stack_only():
    """The counter of `for` over equal items is in no variable."""
    cell = Variable("cell", 0)

    def process():
        while True:
            yield start()
            for _ in ("x", "x", "x"):
                yield load(cell)
            yield store(cell, (yield load(cell)) + (yield load(cell)))

    solved = found(Program("loops", [cell], [process]), processes=1).solved
    assert solved.transfers == {"hit": pytest.approx(6)}


def with_leftovers(leftovers):
    """A process whose last value stays in a variable, though nothing depends on it any more."""
    cell, other = Variable("cell", 0), Variable("other", 0)

    def process():
        value = None
        while True:
            yield start()
            for wanted in (1, 2):
                yield store(cell, wanted)
                value = yield load(cell)
                if not leftovers:
                    del value
                yield load(other)

    return Program("leftovers", [cell, other], [process])


def test_what_is_not_used_any_more_makes_no_states():
    sizes = [found(with_leftovers(each), processes=1).sizes for each in (True, False)]
    assert sizes[0] == sizes[1]


def test_an_endless_count_is_refused():
    cell = Variable("cell", 0)

    def process():
        turn = 0
        while True:
            yield start()
            turn += 1
            yield store(cell, 0)

    with pytest.raises(UsageError, match="a local variable that only grows"):
        found(Program("counts", [cell], [process]), processes=1)


def test_the_state_space_has_a_limit():
    with pytest.raises(UsageError, match="expected at most 100 states, got more"):
        found("sr1", limit=100)


def endless(operation):
    def process():
        while True:
            yield start()
            yield operation

    return process


CELL = Variable("cell", 0)


@pytest.mark.parametrize(
    "processes, complaint",
    [
        ([lambda: 3], "expected a generator function, got one that returns int"),
        ([endless("x")], "expected an operation such as load"),
        ([endless(None)], "expected an operation such as load(x) to be yielded, got None"),
        ([endless(load(Variable("other")))], 'got "other", which is not among its variables'),
        ([endless(store(CELL, []))], "expected a number, a text or a tuple to store, got a list"),
        ([endless(store(3, 1))], "expected a Variable to store, got 3"),
        ([endless(mark(""))], "mark: expected a text, got ''"),
        ([endless(start())], "the loop takes no time"),
        ([endless(fetch_and_add(CELL, "x"))], "fetch-and-add of cell"),
    ],
)
def test_mistakes_in_a_program_are_told(processes, complaint):
    with pytest.raises(UsageError) as raised:
        found(Program("wrong", [CELL], processes), processes=1)
    assert complaint in str(raised.value)
    assert "program wrong, process 0" in str(raised.value)


ELSEWHERE = [0]


def test_a_program_that_keeps_something_elsewhere_is_told():
    def process(me):
        while True:
            yield start()
            value = yield load(CELL)
            ELSEWHERE[0] += 1
            yield store(CELL, ELSEWHERE[0] % 7)
            yield store(CELL, 1 - me if value else me)

    made = Program("elsewhere", [CELL], [lambda: process(0), lambda: process(1)])
    with pytest.raises(UsageError, match="expected the same program on every run"):
        found(made)


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (([CELL], []), "expected at least one process, got none"),
        ((["cell"], [endless(load(CELL))]), "expected variables, got 'cell' among them"),
        (([CELL, CELL], [endless(load(CELL))]), 'expected one variable "cell", got two'),
        (([Variable("x", home=1)], [endless(load(CELL))]), "a process among 0 to 0 as home, got 1"),
    ],
)
def test_mistakes_in_the_parts_are_told(arguments, complaint):
    with pytest.raises(UsageError) as raised:
        Program("wrong", *arguments)
    assert complaint in str(raised.value)


def test_a_specification_that_leads_nowhere_is_told():
    with pytest.raises(UsageError, match='a state after "a" in 0, got 1, which is not one'):
        Program("wrong", [CELL], [endless(load(CELL))], specification={0: {"a": 1}})


def test_an_error_of_the_program_is_told_with_its_line():
    def process():
        yield start()
        yield load(CELL)
        raise KeyError("gone")

    with pytest.raises(UsageError, match=r"primitives.py:\d+: .*process 0: KeyError: 'gone'"):
        found(Program("raises", [CELL], [process]), processes=1)


def test_a_program_that_ends_has_no_long_run():
    def process():
        yield start()
        yield load(CELL)

    each = found(Program("ends", [CELL], [process]), processes=1)
    assert not each.ok
    assert [check.name for check in each.checks if not check.holds] == ["no deadlock or livelock"]


def test_a_model_is_exported_where_a_file_is_given():
    file = io.StringIO()
    assert found("sr1", solve=False, export=file).checks
    assert file.getvalue().startswith("des (0,")
