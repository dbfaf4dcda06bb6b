"""Predicted times of collectives, on a fixed sample of SMPI's own.

`benchmarks/compare_collectives.py` compares all rows.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Where SMPI does not send what MPI asks for: see docs/collectives.md.
DIFFERENT = {("bcast", "SMP_linear"), ("bcast", "arrival_pattern_aware")}


@pytest.fixture(scope="module")
def compare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("compare_collectives")


@pytest.mark.parametrize("platform", ["fat_tree", "graphene"])
def test_times_are_those_of_smpi(compare, platform: str) -> None:
    """Every algorithm and selector once, on 5 ranks or else on the next fewer that SMPI did."""
    compare.register()
    groups = defaultdict(list)
    for row in compare.read_rows(compare.DATA / "coll.jsonl.gz"):
        if row["platform"] == platform and row["ranks"] <= 5:
            name = compare.VARIANTS.get((row["collective"], row["algorithm"]), row["algorithm"])
            row["algorithm"] = name
            groups[row["collective"], row["algorithm"], row["ranks"]].append(row)
    machines = compare.Machines(compare.DATA / "platforms")
    times = good = 0
    for op, name, ranks in groups:
        biggest = max(n for o, a, n in groups if (o, a) == (op, name))
        if (op, name) in DIFFERENT or ranks != biggest:
            continue
        score = compare.score(machines, groups[op, name, ranks])
        assert not score.error
        times += score.times
        good += score.within1
    assert times > 2000
    assert good >= 0.98 * times
