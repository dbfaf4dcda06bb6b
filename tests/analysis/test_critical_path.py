"""The critical path is as long as the run, and shortening it shortens a second run as predicted."""

import re
from collections import defaultdict

import numpy as np
import pytest

from pysmpi.analysis.graph import EventGraph, Scales
from pysmpi.analysis.path import COMPUTE, CONTENTION, LATENCY, TRANSFER, critical_path
from pysmpi.analysis.why import analyse
from pysmpi.trace.events import ARRIVE

FIVE = [
    ("npb_cg.py", 4, "--class", "S"),
    ("jacobi2d.py", 4, "--size", "64", "--iterations", "60"),
    ("dft.py", 4),
    ("nbody.py", 4),
    ("master_worker.py", 4),
]
MACHINE = {"platform": "graphene", "model": "lv08"}


@pytest.fixture(scope="module", params=FIVE, ids=lambda app: app[0])
def app(request):
    return request.param


@pytest.fixture(scope="module")
def run(record, app):
    """The activity of a run of the program, for all tests of it."""
    return record(*app, compute="20us", **MACHINE)


class Shortener:
    """Shortens the compute before the calls of one line."""

    def __init__(self, place, factor):
        self.place, self.factor = place, factor

    def call_begun(self, call):
        file, line, _ = call.site
        if f"{file.rpartition('/')[2]}:{line}" == self.place:
            call.rank.process.debt *= self.factor


def whole(path):
    """Check that a path has no gap."""
    assert path.pieces[0].begin == 0.0
    for piece, following in zip(path.pieces, path.pieces[1:]):
        assert piece.end == following.begin
    assert path.seconds == path.graph.seconds
    assert sum(path.by_cause().values()) == pytest.approx(path.graph.seconds, rel=1e-12)


def test_its_length_is_the_makespan(run):
    graph = EventGraph(run)
    assert graph.seconds == run.result.seconds
    whole(critical_path(graph))
    assert graph.makespan() == pytest.approx(run.seconds, rel=1e-12)


def test_shorter_compute_of_the_line_that_it_names_shortens_a_second_run(record, app, run):
    graph = EventGraph(run)
    path = critical_path(graph)
    lines = defaultdict(float)
    for piece in path.pieces:
        if piece.cause == COMPUTE and piece.site >= 0:
            lines[piece.site] += piece.seconds
    site = max(lines, key=lines.get)
    file, line = run.sites[site][1:3]
    place = f"{file.rpartition('/')[2]}:{line}"
    same = [
        number
        for number, one in enumerate(run.sites)
        if f"{one[1].rpartition('/')[2]}:{one[2]}" == place
    ]
    before = range(-1, len(run.sites))
    lines = {(since, until): 0.9 for since in before for until in same}
    predicted = graph.makespan(Scales(lines=lines))
    assert predicted < run.seconds
    again = record(*app, compute="20us", listener=Shortener(place, 0.9), **MACHINE)
    assert run.seconds - again.seconds == pytest.approx(run.seconds - predicted, rel=0.02)


def test_lower_latency_and_more_bandwidth_shorten_a_second_run_as_predicted(record, app, run):
    graph = EventGraph(run)
    # Factors of 1 in place of lv08's 13.01 and 0.97.
    for cfg, scales in (
        ({"network/latency-factor": str(13.01 * 0.9)}, Scales(latency=0.9)),
        ({"network/bandwidth-factor": str(0.97 / 0.9)}, Scales(transfer=0.9)),
    ):
        again = record(*app, compute="20us", cfg=cfg, **MACHINE)
        assert again.seconds == pytest.approx(graph.makespan(scales), rel=0.02)
        assert again.seconds <= run.seconds


def test_lower_overheads_shorten_a_second_run_as_predicted(record):
    """The processor time of each send and receive, in calls that wait and in calls that do not."""

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(100)
        for _ in range(20):
            if comm.rank == 0:
                comm.Send(data, 1)
                comm.Recv(data, 1)
            else:
                comm.Recv(data, 0)
                comm.Send(data, 0)

    def seconds(each):
        cfg = {"smpi/os": f"0:{each}:0", "smpi/or": f"0:{each}:0"}
        return record(main, 2, compute="none", cfg=cfg, **MACHINE)

    graph = EventGraph(seconds(1e-4))
    for factor in (0.5, 2.0):
        again = seconds(1e-4 * factor).seconds
        assert graph.makespan(Scales(overhead=factor)) == pytest.approx(again, rel=1e-6)


def test_less_compute_saves_no_more_than_its_share(record, app):
    """Also where compute of several lines ends with one call."""
    analysis = analyse(EventGraph(record(*app, compute="1ms", **MACHINE)))
    pattern = re.compile(r"([\d.]+)%  compute .*; 10 % less .* \(([\d.]+)%\)")
    found = [match.groups() for match in map(pattern.search, analysis.lines()) if match]
    assert found
    for share, saved in found:
        assert float(saved) <= float(share) / 10.0 + 0.1


def test_compute_of_two_lines_before_one_call(record):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for i in range(10):
            if i == 0:
                comm.Barrier()
            comm.Sendrecv(bytes(8), comm.rank, 0, bytearray(8), comm.rank, 0)

    lines = analyse(EventGraph(record(main, 1, compute="1ms", **MACHINE))).lines()
    saved = [float(re.search(r"saves ([\d.]+) us", line)[1]) for line in lines if "saves" in line]
    assert sorted(saved) == [100.0, 100.0, 100.0, 900.0]


def test_it_names_the_late_rank_and_the_line(record):
    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for _ in range(3):
            time.sleep(1.0 if comm.rank == 2 else 0.1)
            comm.Barrier()

    run = record(main, 4, compute="none")
    path = critical_path(EventGraph(run))
    whole(path)
    causes = path.by_cause()
    assert causes["sleep"] == pytest.approx(3.0, rel=1e-6)
    assert {piece.rank for piece in path.pieces if piece.cause == "sleep"} == {2}


def test_background_collectives_threads_and_one_sided_calls_have_paths_without_gaps(record):
    def main():
        import threading

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data, total = np.ones(20_000), np.zeros(20_000)
        request = comm.Iallreduce(data, total)
        thread = threading.Thread(target=lambda: comm.Dup().Barrier())
        thread.start()
        thread.join()
        request.Wait()
        window = MPI.Win.Create(total, comm=comm)
        window.Fence()
        window.Put(data, (comm.rank + 1) % comm.size)
        window.Fence()
        window.Lock(0)
        window.Get(data, 0)
        window.Unlock(0)
        window.Free()

    run = record(main, 4, compute="1us", platform="graphene")
    graph = EventGraph(run)
    path = critical_path(graph)
    whole(path)
    causes = path.by_cause()
    assert causes[LATENCY] > 0.0 and causes[TRANSFER] > 0.0
    assert graph.makespan() == pytest.approx(run.seconds, rel=1e-9)


def test_a_message_belongs_to_the_call_that_waits_for_it(record):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(1000)
        if comm.rank == 0:
            comm.Send(data, 1)
        else:
            request = comm.Irecv(data, 0)
            request.Wait()

    path = critical_path(EventGraph(record(main, 2, compute="none", platform="graphene")))
    places = {place.partition(" ")[0] for cause, place, _ in path.by_place() if cause == LATENCY}
    assert places == {"Wait"}


def test_contention_is_told_from_bandwidth(record):
    def main(most):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(1 << 20, np.uint8)
        if comm.rank == 0:
            for source in range(1, most):
                comm.Recv(data, source)
        elif comm.rank < most:
            comm.Send(data, 0)

    alone = critical_path(EventGraph(record(main, 4, 2, compute="none", platform="graphene")))
    crowded = critical_path(EventGraph(record(main, 4, 4, compute="none", platform="graphene")))
    assert alone.by_cause()[CONTENTION] == 0.0
    assert alone.by_cause()[TRANSFER] > 0.9 * alone.seconds
    assert crowded.seconds > 1.2 * alone.seconds or crowded.by_cause()[CONTENTION] == 0.0


@pytest.mark.parametrize("more, expected", [(1e-12, 0.0), (1e-3, 1e-3)])
def test_a_difference_of_rounding_is_no_contention(record, more, expected):
    """A flight that ends a little later than latency and bandwidth say."""

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            comm.Recv(np.zeros(1000, np.uint8), 1)
        else:
            comm.Send(np.zeros(1000, np.uint8), 0)

    graph = EventGraph(record(main, 2, compute="none", platform="graphene"))
    flights = [row for row in range(len(graph.kind)) if graph.kind[row] == ARRIVE]
    assert flights
    for row in flights:
        graph.date[row] += more * graph.date[row]
        graph.date[row + 1 :] = [max(date, graph.date[row]) for date in graph.date[row + 1 :]]
    path = critical_path(graph)
    assert path.by_cause()[CONTENTION] == pytest.approx(
        expected * graph.date[flights[-1]], rel=1e-2, abs=0.0
    )
