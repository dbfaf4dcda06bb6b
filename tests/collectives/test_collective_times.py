"""Predicted times of collectives, on a fixed sample of SMPI's own.

`benchmarks/compare_collectives.py` compares all rows.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Cases in which SMPI deviates from MPI: see docs/explanation/smpi.md.
DIFFERENT = {
    ("bcast", "SMP_linear"): "SMPI's run ends with a truncated message, or early",
    ("bcast", "arrival_pattern_aware"): "SMPI takes signs of earlier calls for those of the call",
}
# More than 2 % of the times are more than 1 % apart, none more than 5 %.
LAZY = "SMPI updates shares lazily: flows of one instant on the fat tree, docs/explanation/smpi.md"
APART = {
    ("allgather", "smp_simple"): LAZY,
    ("scatter", "impi"): LAZY,
    ("alltoallv", "impi"): LAZY,
    ("bcast", "SMP_binary"): LAZY,
    ("alltoall", "pair_rma"): "1.3 % at 400 kB between two ranks, not explained yet",
}
ENTRY = 1e-6  # seconds by which the ranks of the reference enter a call apart


@pytest.fixture(scope="module")
def compare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("compare_collectives")


@pytest.mark.parametrize("platform", ["fat_tree", "graphene"])
def test_times_are_those_of_smpi(compare, platform: str) -> None:
    """Every algorithm and selector is judged for itself: 98 % within 1 %, all within 5 %.

    Each once, on 5 ranks or else on the next fewer that SMPI did.
    """
    compare.register()
    groups = defaultdict(list)
    for row in compare.read_rows(compare.DATA / "coll.jsonl.gz"):
        if row["platform"] == platform and row["ranks"] <= 5:
            name = compare.VARIANTS.get((row["collective"], row["algorithm"]), row["algorithm"])
            row["algorithm"] = name
            groups[row["collective"], row["algorithm"], row["ranks"]].append(row)
    machines = compare.Machines(compare.DATA / "platforms")
    judged, wrong = 0, []
    for op, name, ranks in groups:
        biggest = max(n for o, a, n in groups if (o, a) == (op, name))
        if (op, name) in DIFFERENT or ranks != biggest:
            continue
        rows = sorted(groups[op, name, ranks], key=lambda row: row["bytes"])
        transport = machines.transport(platform, rows[0]["model"], ranks)
        pairs = [
            (mine, theirs)
            for row, seconds in zip(rows, compare.Job(transport, ranks).run(rows), strict=True)
            for mine, theirs in zip(seconds, row["seconds"], strict=True)
        ]
        judged += 1
        near = sum(abs(mine - theirs) <= max(0.01 * theirs, ENTRY) for mine, theirs in pairs)
        worst = max(abs(mine - theirs) / max(theirs, 20 * ENTRY) for mine, theirs in pairs)
        share = 0.90 if (op, name) in APART else 0.98
        if near < share * len(pairs) or not worst <= 0.05:
            wrong.append((op, name, ranks, f"{near} of {len(pairs)} near, worst {worst:.3f}"))
    assert judged > 160
    assert not wrong
