"""Recorded random machines and programs: their phases take the times of SMPI 3.32."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

import pysmpi

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "random_platforms"))

from interpreter import execute  # noqa: E402
from programs import KINDS  # noqa: E402

DATA = HERE.parent / "data" / "random_platforms.json.gz"
CASES = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["seed"]))
def test_a_recorded_case_takes_the_times_of_smpi(case, tmp_path):
    (tmp_path / "platform.xml").write_text(case["platform"])
    (tmp_path / "hosts").write_text("\n".join(case["hosts"]) + "\n")
    times = pysmpi.run(
        execute, len(case["hosts"]), args=(case["lines"],), platform=tmp_path / "platform.xml",
        hostfile=tmp_path / "hosts", cfg=case["options"], compute="none",
    ).returns  # fmt: skip
    for i, (label, wanted) in enumerate(zip(case["labels"], case["seconds"], strict=True)):
        if KINDS[label.split()[0]]:
            found = [rank[2 * i + 1] - rank[2 * i] for rank in times]
            # SimGrid's dates are exact to a nanosecond.
            assert found == pytest.approx(wanted, rel=0.01, abs=5e-9), label


def test_the_cases_are_of_all_kinds():
    labels = {label.split()[0] for case in CASES for label in case["labels"]}
    assert labels >= {kind for kind, judged in KINDS.items() if judged}
    assert max(len(case["hosts"]) for case in CASES) > 8
