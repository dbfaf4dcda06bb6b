"""Collective algorithms take the time that SMPI predicts: some of each operation's, drawn once."""

import random

import draws
import pytest
from reference_rows import Comparison, predicted, read_rows

from pysmpi.collectives import registry

ROWS = [row for row in read_rows("coll.jsonl.gz") if row.platform == "graphene"]
OPERATIONS = sorted({row.pattern for row in ROWS})
WITHOUT_CHOICE = {"scan", "exscan"}
DRAWN = 3  # algorithms of an operation
RANKS = 16  # at most

# SMPI's ranks entered a call up to some microseconds apart; chains of messages add that up.
CLOSE, SHARE = 0.02, 0.98

# Cases in which SMPI 3.32 deviates from the algorithm.
OTHERWISE = {
    ("allreduce", "smp_binomial_pipeline"): "SMPI loses what does not fill the last segment",
    ("bcast", "flattree_pipeline"): "SMPI never sends the last, partial segment",
    ("bcast", "SMP_linear"): "SMPI's run ends with a truncated message",
    ("bcast", "arrival_pattern_aware"): "which ranks are there first hangs on microseconds",
    ("bcast", "arrival_pattern_aware_wait"): "which ranks are there first hangs on microseconds",
}


def sample(operation):
    """(algorithm, rows for one number of ranks) of the algorithms that are drawn."""
    known = {*registry.algorithms_of(operation), *registry.SELECTORS.names()}
    if operation in WITHOUT_CHOICE:
        known = {"default"}
    rows = [
        row
        for row in ROWS
        if row.pattern == operation
        and row.ranks <= RANKS
        and row.algorithm in known
        and (operation, row.algorithm) not in OTHERWISE
    ]
    algorithms = sorted({row.algorithm for row in rows})
    draws.say()
    draw = random.Random(f"{operation} {draws.SEED}")
    for algorithm in draw.sample(algorithms, min(DRAWN, len(algorithms))):
        ranks = draw.choice(sorted({row.ranks for row in rows if row.algorithm == algorithm}))
        yield algorithm, [row for row in rows if (row.algorithm, row.ranks) == (algorithm, ranks)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_collectives_as_smpi(operation, tmp_path):
    comparison = Comparison(close=CLOSE)
    for algorithm, rows in sample(operation):
        chosen = () if operation in WITHOUT_CHOICE else (f"smpi/{operation}:{algorithm}",)
        times = predicted("coll_calls.py", rows, chosen, tmp_path)
        for row in rows:
            comparison.add(row, times[row.pattern, row.nbytes])
    assert comparison.total
    comparison.check(SHARE)
