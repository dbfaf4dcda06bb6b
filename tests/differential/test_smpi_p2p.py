"""Point-to-point patterns take the time that SMPI predicts."""

import os

import pytest
from reference_rows import Comparison, predicted, read_rows

ROWS = read_rows("p2p.jsonl.gz")
EXACT_ROWS = read_rows("p2p_exact.jsonl.gz")
MODELS = ["default", "hybrid"]
# The error of the common clock of a job, beside the rounding of SMPI's printed figures.
ROUNDING = 1e-7
# If several links fill up in turn, the two solvers may stop at slightly different rates.
SOLVERS = 2e-3
# SMPI lets wildcards take messages in the order of posting, whichever arrives first.
POSTED = ("smpi/matching:posted",)


def rows_of(rows, platform, model, ranks):
    """The rows of one machine and number of ranks."""
    return [row for row in rows if (row.platform, row.model, row.ranks) == (platform, model, ranks)]


def machines(platforms, ranks):
    """Each platform with each number of ranks, and each pair of one of them and a model.

    All combinations with PYSMPI_ALL_SUITES=1.
    """
    return [
        (platform, MODELS[model], size)
        for i, platform in enumerate(platforms)
        for j, size in enumerate(ranks)
        for model in ((0, 1) if os.environ.get("PYSMPI_ALL_SUITES") else ((i + j) % 2,))
    ]


@pytest.mark.parametrize(
    ("platform", "model", "ranks"),
    machines(["flat", "shared_backbone", "graphene"], [2, 5, 8, 64]),
)
def test_all_sizes_as_smpi(platform, model, ranks, tmp_path):
    rows = rows_of(ROWS, platform, model, ranks)
    times = predicted("p2p_patterns.py", rows, POSTED, tmp_path)
    comparison = Comparison()
    for row in rows:
        comparison.add(row, times[row.pattern, row.nbytes])
    comparison.check()


@pytest.mark.parametrize(
    ("platform", "model", "ranks"),
    machines(["flat", "shared_backbone", "graphene", "fat_tree", "torus", "dragonfly"], [5, 16]),
)
def test_exactly_as_smpi(platform, model, ranks, tmp_path):
    rows = rows_of(EXACT_ROWS, platform, model, ranks)
    times = predicted("p2p_patterns.py", rows, POSTED, tmp_path)
    comparison = Comparison(close=ROUNDING, far=SOLVERS)
    for row in rows:
        comparison.add(row, times[row.pattern, row.nbytes])
    comparison.check()


@pytest.mark.parametrize("platform", ["fat_tree", "flat"])
def test_where_messages_do_not_race_their_order_of_arrival_changes_nothing(platform, tmp_path):
    rows = rows_of(EXACT_ROWS, platform, "default", 5)
    times = predicted("p2p_patterns.py", rows, (), tmp_path)
    comparison = Comparison(close=ROUNDING, far=SOLVERS)
    for row in rows:
        if row.pattern != "anysource":
            comparison.add(row, times[row.pattern, row.nbytes])
    comparison.check()


def test_rows_are_complete():
    for rows in (ROWS, EXACT_ROWS):
        kinds = {(row.platform, row.model) for row in rows}
        assert len(kinds) == 12
    patterns = {row.pattern for row in EXACT_ROWS}
    assert patterns == {row.pattern for row in ROWS}
    assert len(patterns) == 15
