"""Efficiencies and predictions hold against second runs; records that are damaged are refused."""

import base64
import json
import random
import re
from os.path import relpath

import numpy as np
import pytest

import pysmpi
from pysmpi.analysis.extrapolation import extrapolate
from pysmpi.analysis.graph import EventGraph, Scales, read
from pysmpi.analysis.why import analyse
from pysmpi.cli.main import status_of
from pysmpi.errors import UsageError

MACHINE = {"platform": "graphene", "model": "lv08"}


def stencil(steps):
    """A ring with reductions."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data, back = np.zeros(10_000), np.zeros(10_000)
    for _ in range(steps):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.Sendrecv(data, right, recvbuf=back, source=left)
        comm.Allreduce(data[:10], back[:10])


class Straggler:
    """Multiplies the compute of one rank."""

    def __init__(self, rank, factor):
        self.rank, self.factor = rank, factor

    def call_begun(self, call):
        if call.rank.index == self.rank:
            call.rank.process.debt *= self.factor


def test_the_efficiencies_are_those_of_their_definitions(record):
    run = record(stencil, 4, 10, compute="1ms", listener=Straggler(2, 1.5), **MACHINE)
    found = analyse(EventGraph(run))
    compute = found.profile.compute
    pop = found.efficiencies
    assert compute[2] == pytest.approx(1.5 * compute[1], rel=0.1)
    assert pop.load_balance == pytest.approx(np.mean(compute) / max(compute))
    assert pop.parallel == pytest.approx(np.mean(compute) / run.seconds)
    assert pop.parallel == pytest.approx(pop.load_balance * pop.serialisation * pop.transfer)
    assert pop.communication == pytest.approx(pop.serialisation * pop.transfer)
    assert sum(compute) == pytest.approx(
        sum(rank["compute_seconds"] for rank in run.result.ranks), rel=1e-9
    )


def test_a_straggler_and_even_load_are_predicted(record):
    run = record(stencil, 4, 10, compute="1ms", **MACHINE)
    slow = record(stencil, 4, 10, compute="1ms", listener=Straggler(1, 2.0), **MACHINE)
    assert EventGraph(run).makespan(Scales(ranks={1: 2.0})) == pytest.approx(slow.seconds, rel=0.02)
    assert EventGraph(slow).makespan(Scales(ranks={1: 0.5})) == pytest.approx(run.seconds, rel=0.02)


@pytest.mark.parametrize("late", [1.5, 25.0])
def test_predictions_are_those_of_their_names(record, late):
    def gather(steps):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for _ in range(steps):
            if comm.rank == 1:
                requests = [comm.Irecv(np.zeros(200_000), peer) for peer in (0, 2, 3)]
                MPI.Request.Waitall(requests)
            else:
                comm.Send(np.zeros(200_000), 1)
            comm.Barrier()

    run = record(gather, 4, 3, compute="1ms", listener=Straggler(2, late), **MACHINE)
    graph = EventGraph(run)
    found = analyse(graph)
    seconds, predicted = graph.seconds, found.what_if
    slowest = int(np.argmax(found.profile.compute))
    assert (slowest == 2) == (late > 2.0)
    for name, scales in (
        ("ideal network", Scales(latency=0.0, transfer=0.0, overhead=0.0)),
        ("ideal compute", Scales(compute=0.0)),
        ("half the latency", Scales(latency=0.5)),
        ("twice the bandwidth", Scales(transfer=0.5)),
        ("twice the compute speed", Scales(compute=0.5)),
        ("no contention", Scales(contention=0.0)),
        (f"rank {slowest} twice as slow", Scales(ranks={slowest: 2.0})),
    ):
        assert predicted[name] == graph.makespan(scales), name
        assert "slow" in name or predicted[name] < seconds, name
    causes = found.path.by_cause()
    if late > 2.0:
        # The others are ready before rank 2 begins to send.
        assert predicted["rank 2 twice as slow"] > 1.2 * seconds
    else:
        # Three messages share the link into rank 1.
        assert causes["contention"] > causes["transfer"] > causes["latency"] > 0.0
    change = graph.makespan(Scales(transfer=1.0001)) / seconds - 1.0
    # Several paths are nearly as long as the critical one.
    assert found.sensitivity["bandwidth"] == pytest.approx(change / 1e-4, abs=0.02)
    mean = np.mean(found.profile.compute)
    even = {rank: mean / own for rank, own in enumerate(found.profile.compute)}
    assert predicted["even load"] == pytest.approx(graph.makespan(Scales(ranks=even)))
    (slow,) = [name for name in predicted if name.startswith("link ")]
    carried = {}
    for _, _, _, _, nbytes, route, *_ in run.messages.tolist():
        for link in run.routes[route]:
            carried[link] = carried.get(link, 0) + nbytes
    (name,) = slow.split()[1:2]
    most = [run.links[link][0] for link in carried if carried[link] == max(carried.values())]
    assert name in most
    # All of the bytes cross it, so this is half the bandwidth.
    assert predicted[slow] == pytest.approx(graph.makespan(Scales(transfer=2.0)), rel=1e-3)


def test_ideal_compute_is_predicted(record):
    run = record(stencil, 4, 10, compute="50us", **MACHINE)
    ideal = record(stencil, 4, 10, compute="none", **MACHINE)
    assert EventGraph(run).makespan(Scales(compute=0.0)) == pytest.approx(ideal.seconds, rel=0.02)


def test_the_sensitivities_are_derivatives(record):
    run = record(stencil, 4, 10, compute="100us", **MACHINE)
    found = analyse(EventGraph(run))
    step = 1e-4
    for name, scales in (
        ("compute", Scales(compute=1 + step)),
        ("latency", Scales(latency=1 + step)),
        ("bandwidth", Scales(transfer=1 + step)),
    ):
        change = found.graph.makespan(scales) / run.seconds - 1.0
        assert found.sensitivity[name] == pytest.approx(change / step, abs=0.01)


def test_the_line_of_what_limits_names_the_late_rank_and_the_call(record):
    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        out = np.zeros(1)
        for step in range(10):
            time.sleep(0.05 if comm.rank == 3 and step % 5 else 0.001)
            comm.Allreduce(np.ones(1), out)

    limit = analyse(EventGraph(record(main, 4, compute="none"))).limit()
    assert "rank 3 is late in 80% of the Allreduce at" in limit
    assert "waiting" in limit


def test_a_run_without_a_recording_says_it_too():
    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        out = np.zeros(1)
        for _ in range(300):
            time.sleep(0.05 if comm.rank == 3 else 0.001)
            comm.Allreduce(np.ones(1), out)

    result = pysmpi.run(main, 8, compute="none")
    assert "Allreduce at" in result.limit
    assert "for rank 3" in result.limit


def test_recordings_come_back_as_they_were_written(record, tmp_path):
    options = {"compute": "10us", "platform": "graphene"}
    run = record(stencil, 4, 3, **options)
    record(stencil, 4, 3, path=tmp_path / "a.jsonl", **options)
    graph = read(str(tmp_path / "a.jsonl"))
    assert analyse(graph).report() == analyse(EventGraph(run)).report()


def test_damaged_recordings_give_one_line(record, tmp_path, capsys):
    record(stencil, 2, 2, path=tmp_path / "a.jsonl", compute="10us")
    whole = (tmp_path / "a.jsonl").read_bytes()
    chance = random.Random(1)
    path = tmp_path / "b.jsonl"

    def check(number):
        status = status_of(["analyse", str(path)])
        error = capsys.readouterr().err
        assert status in (0, 2), (number, error)
        if status == 2:
            assert error.count("\n") == 1 and "b.jsonl" in error, (number, error)

    for number in range(100):
        data = bytearray(whole)
        if number % 3 == 0:
            data = data[: chance.randrange(len(data))]
        else:
            for _ in range(number % 3):
                data[chance.randrange(len(data))] = chance.choice(b'0123456789-[]{}",.e nul')
        path.write_bytes(data)
        check(number)
    # Lines that are whole, and wrong.
    lines = whole.splitlines()
    events = [i for i, line in enumerate(lines) if line.startswith((b'["even', b'["mess'))]
    for number in range(150):
        changed = list(lines)
        at = chance.choice(events)
        table = json.loads(changed[at])
        which = chance.randrange(1, len(table))
        kind, data = table[which].split(":")
        column = np.frombuffer(base64.b64decode(data), f"<{kind}").tolist()
        column[chance.randrange(len(column))] = chance.randrange(-5, 30)
        table[which] = column
        changed[at] = json.dumps(table).encode()
        path.write_bytes(b"\n".join(changed) + b"\n")
        check(number)
    assert status_of(["analyse", str(tmp_path / "none.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_the_commands_write_what_they_say(record, tmp_path, capsys):
    path = str(tmp_path / "a.jsonl")
    record(stencil, 4, 3, path=path, compute="10us", platform="graphene")
    assert status_of(["analyse", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("limit: ") and "critical path: " in text and "what if: " in text
    assert status_of(["analyse", path, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
    assert status_of(["analyse", path, "--compute", "0.9", "--rank", "1=2"]) == 0
    assert "predicted" in capsys.readouterr().out
    assert status_of(["view", path]) == 0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    for wrong in (
        ["--compute", "x"], ["--rank", "9=1"], ["--rank", "1"], ["--link", "nowhere=2"],
        ["--latency", "-1"],
    ):  # fmt: skip
        capsys.readouterr()
        assert status_of(["analyse", path, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_options_of_a_run_write_record_page_and_analysis(tmp_path):
    result = pysmpi.run(
        stencil, 4, args=(3,), compute="10us", platform="graphene", explain=True,
        trace=tmp_path / "a.jsonl", view=tmp_path / "a.html", report=tmp_path / "a.json",
    )  # fmt: skip
    assert result.analysis["seconds"] == result.seconds
    assert result.analysis["critical_path"]["seconds"] == pytest.approx(result.seconds)
    assert read(str(tmp_path / "a.jsonl")).seconds == result.seconds
    assert "<canvas" in (tmp_path / "a.html").read_text() or (tmp_path / "a.html").exists()
    assert json.loads((tmp_path / "a.json").read_text())["analysis"]["schema"] == 1
    plain = pysmpi.run(stencil, 4, args=(3,), compute="10us", platform="graphene")
    assert plain.seconds == result.seconds and plain.analysis is None


def scaled(steps, in_place=False):
    """Work that is divided among the ranks, and a reduction."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    out = np.zeros(1000)
    for _ in range(steps):
        time.sleep(0.1 / comm.size)
        comm.Allreduce(MPI.IN_PLACE if in_place else np.ones(1000), out)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_larger_run_is_extrapolated(record, in_place):
    machine = {"compute": "none", "platform": "graphene"}
    graphs = [EventGraph(record(scaled, n, 5, in_place, **machine)) for n in (2, 4, 8, 16)]
    real = record(scaled, 64, 5, in_place, **machine)
    # The library chooses another algorithm for 64 ranks than for any of the runs.
    used = [run.collectives[name].algorithms for run in (graphs[-1].record, real)
            for name in run.collectives]  # fmt: skip
    assert used[0] != used[1]
    found = extrapolate(graphs, 64)
    assert found.seconds == pytest.approx(real.seconds, rel=0.1)
    assert any("schedules on 64 ranks" in found.law_of(cause) for cause in found.laws)


def test_changes_of_algorithm_without_a_price_are_refused(record):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for step in range(3):
            comm.Reduce(np.ones(1000 + step), np.ones(1000 + step))

    machine = {"compute": "none", "platform": "graphene"}
    graphs = [EventGraph(record(main, n, **machine)) for n in (2, 4, 8)]
    used = {name for graph in graphs for one in graph.record.collectives.values()
            for name in one.algorithms}  # fmt: skip
    assert len(used) > 1
    with pytest.raises(UsageError, match=r"its algorithm changes .* its calls differ"):
        extrapolate(graphs, 64)


def test_runs_that_do_not_extrapolate_are_refused_with_a_reason(record):
    def other(steps):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.size > 4:
            comm.Barrier()
        comm.Barrier()

    graphs = [EventGraph(record(scaled, n, 2, compute="none")) for n in (2, 4, 8)]
    with pytest.raises(UsageError, match="at least 3"):
        extrapolate(graphs[:2], 64)
    with pytest.raises(UsageError, match="more than the 8 ranks"):
        extrapolate(graphs, 8)
    changed = [EventGraph(record(other, n, 2, compute="none")) for n in (2, 4, 8)]
    with pytest.raises(UsageError, match="structure changes"):
        extrapolate(changed, 64)
    graphs[0] = EventGraph(record(scaled, 2, 2, compute="none", platform="graphene"))
    with pytest.raises(UsageError, match="platform"):
        extrapolate(graphs, 64)

    def erratic():
        import time

        from mpi4py import MPI

        time.sleep({2: 1.0, 4: 0.1, 8: 3.0, 16: 0.2}[MPI.COMM_WORLD.size])

    wild = [EventGraph(record(erratic, n, compute="none")) for n in (2, 4, 8, 16)]
    with pytest.raises(UsageError, match="no simple law"):
        extrapolate(wild, 64)


def test_a_notebook_shows_a_result():
    result = pysmpi.run(stencil, 40, args=(2,), compute="10us", platform="graphene")
    html = result._repr_html_()
    assert html.count("<tr>") == 33 and "and 8 more ranks" in html
    assert "40 ranks" in html
    explained = pysmpi.run(stencil, 2, args=(2,), compute="10us", explain=True)
    assert "critical path" in explained._repr_html_()


def test_a_picture_of_the_timeline(record, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    record(stencil, 4, 3, path=tmp_path / "a.jsonl", compute="10us", platform="graphene")
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
        assert status_of(["view", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    both = [str(tmp_path / "a.jsonl")] * 2
    assert status_of(["view", *both, "-o", str(tmp_path / "b.png")]) == 2
    assert "a picture shows one run" in capsys.readouterr().err


def barriers_and_a_broadcast():
    """The compute of the path is before, between and after these calls."""
    from mpi4py import MPI

    for _ in range(3):
        MPI.COMM_WORLD.Barrier()
    MPI.COMM_WORLD.Bcast(bytearray(1))


def test_the_text_says_where_the_compute_of_the_path_is(record):
    run = record(barriers_and_a_broadcast, 2, compute="1ms", **MACHINE)
    first = barriers_and_a_broadcast.__code__.co_firstlineno
    barrier, broadcast = f"line {first + 5}", f"line {first + 6}"
    said = "\n".join(analyse(EventGraph(run)).lines())
    where = re.findall("%  compute (.*);", said.replace(relpath(__file__), "test_why.py"))
    assert where == [
        f"between two calls at {barrier} of test_why.py",
        f"after {broadcast} of test_why.py",
        f"before {barrier} of test_why.py",
        f"from {barrier} to {broadcast} of test_why.py",
    ]


def test_without_compute_nothing_is_said_about_it(record):
    run = record(stencil, 4, 3, compute="none", **MACHINE)
    found = analyse(EventGraph(run))
    assert found.efficiencies is None and found.report()["efficiencies"] is None
    assert set(found.what_if) >= {"half the latency", "twice the bandwidth", "no contention"}
    assert not [name for name in found.what_if if "compute" in name or "ideal" in name]
    assert not {"even load", "rank 0 twice as slow"} & set(found.what_if)
    text = "\n".join(found.lines())
    assert "no compute was timed: efficiencies are not known" in text
    assert "efficiency 0.0%" not in text and "e-" not in text


def test_the_limit_of_compute_names_its_lines(record):
    run = record(barriers_and_a_broadcast, 2, compute="1ms", **MACHINE)
    limit = analyse(EventGraph(run)).limit()
    assert re.match(r"\d+% computing: \d+% of it between two calls at line \d+ of ", limit)
