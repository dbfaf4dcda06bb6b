"""The use of links and hosts: amounts, shares, and the files that other programs read."""

import csv
import json
import shlex

import numpy as np
import pytest

from pysmpi.analysis.graph import EventGraph
from pysmpi.analysis.usage import COLUMNS, host_usage, link_usage, suffix_of, write_usage
from pysmpi.analysis.why import analyse
from pysmpi.errors import UsageError
from pysmpi.platform.loader import load


def work(nbytes, count):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.zeros(nbytes, "u1")
    for _ in range(count):
        if comm.rank == 0:
            comm.Send(data, 1)
        elif comm.rank == 1:
            comm.Recv(data, 0)
        comm.Barrier()


@pytest.fixture
def graph(record):
    return EventGraph(record(work, 3, 1_000_000, 4, platform="graphene", compute="10ms"))


def test_links_have_the_bytes_of_the_messages_that_cross_them(graph):
    used = {one.name: one for one in link_usage(graph, 50)}
    record = graph.record
    wanted = {}
    for nbytes, route in record.messages[:, [4, 5]].tolist():
        for link in record.routes[route]:
            wanted[record.links[link][0]] = wanted.get(record.links[link][0], 0) + nbytes
    wanted = {name: nbytes for name, nbytes in wanted.items() if nbytes}
    assert {name: round(one.amounts.sum()) for name, one in used.items()} == wanted
    most = max(used.values(), key=lambda one: one.amounts.sum())
    assert most.amounts.sum() >= 4_000_000 and most.capacity > 1e8
    shares = most.shares(graph.seconds)
    assert 0.5 < shares.max() < 1.001 and shares.min() == 0.0 and len(shares) == 50


@pytest.mark.parametrize("platform", ["cluster", "graphene", "griffon"])
def test_no_bytes_cross_the_links_of_the_way_back(platform, record):
    """A flow takes a part of their bandwidth for its acknowledgements (`network/crosstraffic`)."""

    def send():
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            MPI.COMM_WORLD.Send(np.zeros(1_000_000, "u1"), 1)
        else:
            MPI.COMM_WORLD.Recv(np.zeros(1_000_000, "u1"), 0)

    graph = EventGraph(record(send, 2, platform=platform, compute="none", map_by="node"))
    machine = load(platform)
    one, other = (machine.host(name) for name in graph.record.hosts)
    used = [usage.name for usage in link_usage(graph, 10)]
    route = [link.name for link in machine.way(one, other)]
    assert used and used == [name for name in route if name in used]
    back = {link.name for link in machine.way(other, one)}
    assert not back.intersection(used).difference(route)
    (slow,) = (name for name in analyse(graph).what_if if name.startswith("link "))
    assert slow.split()[1] in route


def test_hosts_have_the_compute_of_their_ranks(graph):
    found = host_usage(graph, 20)
    computed = sum(
        graph.date[row] - graph.date[graph.before[row]]
        for row in range(len(graph.kind))
        if graph.before[row] >= 0 and not graph.in_call(row)
    )
    assert [one.name for one in found] == graph.record.hosts
    total = sum(one.amounts.sum() for one in found)
    assert total == pytest.approx(computed) and total > 3 * 4 * 0.010
    assert all(0.0 <= one.shares(graph.seconds).max() < 1.001 for one in found)


def test_files_have_the_same_rows(graph, tmp_path):
    write_usage(str(tmp_path / "a.csv"), "csv", graph)
    write_usage(str(tmp_path / "a.json"), "json", graph)
    with open(tmp_path / "a.csv", newline="") as stream:
        table = list(csv.DictReader(stream))
    rows = json.loads((tmp_path / "a.json").read_text())
    assert list(table[0]) == list(rows[0]) == list(COLUMNS)
    assert [{name: str(value) for name, value in row.items()} for row in rows] == table
    used = [*link_usage(graph, 100), *host_usage(graph, 100)]
    assert len(rows) == 100 * len(used)
    last = rows[99]
    assert last["end"] == pytest.approx(graph.seconds) and last["name"] == used[0].name
    for row in rows:
        share = row["amount"] / row["capacity"] / (row["end"] - row["begin"])
        assert row["use"] == pytest.approx(share, rel=1e-9, abs=1e-12)
    arrow = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    write_usage(str(tmp_path / "a.parquet"), "parquet", graph)
    assert arrow.read_table(tmp_path / "a.parquet").to_pylist() == rows


def read_paje(text):
    """The events of a file of Paje, as its header says: a dictionary of fields for each."""
    fields, definition, events = {}, None, []
    for line in text.splitlines():
        words = shlex.split(line)
        if words[0] == "%EventDef":
            definition = fields[words[2]] = [("event", words[1])]
        elif words[0] == "%":
            definition.append((words[1], words[2]))
        elif words[0] != "%EndEventDef":
            (_, event), *names = fields[words[0]]
            assert len(names) == len(words) - 1, line
            events.append({"event": event, **dict(zip([name for name, _ in names], words[1:]))})
    return events


@pytest.mark.parametrize("suffix", ["paje", "trace"])
def test_variables_of_paje_have_the_same_amounts(graph, tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    write_usage(str(path), suffix, graph)
    events = read_paje(path.read_text())
    times = [float(one["Time"]) for one in events if "Time" in one]
    assert times == sorted(times)
    assert events[-1]["event"] == "PajeDestroyContainer" and times[-1] == pytest.approx(
        graph.seconds
    )
    names = {one["Alias"]: one["Name"] for one in events if one["event"] == "PajeCreateContainer"}
    values = [one for one in events if one["event"] == "PajeSetVariable"]
    for used, variables in (
        (link_usage(graph, 100), ("bandwidth", "bandwidth_used")),
        (host_usage(graph, 100), ("core_count", "cores_used")),
    ):
        for one in used:
            most, rates = (
                [
                    (float(value["Time"]), float(value["Value"]))
                    for value in values
                    if value["Type"] == variable and names[value["Container"]] == one.name
                ]
                for variable in variables
            )
            assert most == [(0.0, pytest.approx(one.capacity))]
            ends = [time for time, _ in rates[1:]] + [graph.seconds]
            total = sum(rate * (end - time) for (time, rate), end in zip(rates, ends))
            assert total == pytest.approx(one.amounts.sum(), rel=1e-6, abs=1e-9)
            assert max(rate for _, rate in rates) == pytest.approx(
                one.amounts.max() / graph.seconds * 100, rel=1e-6
            )


def test_another_suffix_is_refused():
    with pytest.raises(UsageError, match=r"--usage a\.txt: expected the suffix \.csv, \.json"):
        suffix_of("--usage", "a.txt")
    assert suffix_of("--usage", "A.CSV") == "csv"
