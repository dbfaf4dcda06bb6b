"""Ranks that wait for each other have equal charges, others do not."""

from statistics import fmean

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pysmpi
from pysmpi.shadow.estimate import StoppingRule
from pysmpi.shadow.passes import Entry
from pysmpi.shadow.teams import Team, components

OPTIONS = "scope=collective,warmup=0,iters=2"


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9))))
def test_components_are_those_of_networkx(graph):
    other = networkx.DiGraph(graph)
    expected = sorted(sorted(ranks) for ranks in networkx.strongly_connected_components(other))
    assert sorted(components(graph)) == expected


@given(st.lists(st.integers(0, 3), min_size=1), st.integers(1, 4))
def test_a_team_knows_the_passes_that_all_have_measured(order, size):
    entries = [Entry() for _ in range(size)]
    team = Team(entries)
    rule = StoppingRule(warmup=0)
    for step, rank in enumerate(order):
        entries[rank % size].estimate.add(float(step), rule)
        passes = min(entry.estimate.count for entry in entries)
        columns = list(zip(*(entry.estimate.values[:passes] for entry in entries), strict=True))
        expected = [fmean(column) for column in columns]
        found = team.typical("mean")
        assert team.means == pytest.approx(expected)
        assert found == (pytest.approx(fmean(expected)) if expected else None)


@pytest.fixture
def seconds(tmp_path):
    def run(text, nprocs, **options):
        path = tmp_path / "program.py"
        path.write_text("import time\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n" + text)
        result = pysmpi.run(path, nprocs, compute="none", **options)
        return result, [each["end_seconds"] for each in result.ranks]

    return run


COUPLED = """
time.sleep(0.003 * world.rank)
def step():
    time.sleep(0.001 * (1 + (world.rank == 1)))
    world.barrier()
for _ in range(200):
    step()
"""


@pytest.mark.parametrize("every", ["", ",every=20"])
def test_who_comes_late_to_the_first_pass_does_not_run_ahead(seconds, every):
    whole, _ = seconds(COUPLED, 4)
    sampled, ends = seconds(COUPLED, 4, sample=[f"__main__:step:{OPTIONS}{every}"])
    assert sampled.shadow["sampled"][0]["skipped"] > 4 * 180
    # Rank 0 began 9 ms before the others came: spread over two passes that were measured.
    late = 0.009 / 2 / 2 * 200
    assert whole.seconds <= sampled.seconds <= whole.seconds + late
    assert max(ends) - min(ends) < 0.01


PIPELINE = """
def step():
    time.sleep(0.001 * (1 + world.rank))
    if world.rank:
        world.recv(source=world.rank - 1)
    if world.rank + 1 < world.size:
        world.send(None, dest=world.rank + 1)
for _ in range(100):
    step()
"""


def test_who_does_not_wait_for_others_keeps_its_own_pace(seconds):
    _, plain = seconds(PIPELINE, 3)
    _, sampled = seconds(PIPELINE, 3, sample=[f"__main__:step:{OPTIONS}"])
    assert sampled == [pytest.approx(date, rel=0.02) for date in plain]


def test_a_trace_goes_on_while_passes_are_measured(seconds, tmp_path):
    trace = tmp_path / "trace.csv"
    seconds(PIPELINE, 3, sample=[f"__main__:step:{OPTIONS}"], trace=str(trace))
    rows = [line.split(",") for line in trace.read_text().splitlines()[1:]]
    sent = [int(row[6]) for row in rows if row[1:3] == ["Leave", "send"]]
    assert len(sent) == 2 * 2 and all(sent)
