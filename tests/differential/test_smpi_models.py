"""Point-to-point patterns under SimGrid's models CM02, LV08 and IB take SMPI's times.

The rows come from Debian's SMPI, with `cpu/optim:TI`. Where SMPI is installed, a part of them is
made again, to check that the stored ones are SMPI's.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys

import pytest
from reference_rows import DATA, Comparison, Row, predicted

sys.path.append(str(DATA))

from record_exact import CONFIGURATIONS, MODEL_PLATFORMS, PATTERNS, Smpi  # noqa: E402

needs_smpi = pytest.mark.skipif(
    shutil.which("smpicc") is None or shutil.which("smpirun") is None,
    reason="needs SMPI (Debian: libsimgrid-dev) to make the rows again",
)


def stored(configuration: str) -> list[Row]:
    """The rows of a configuration."""
    with gzip.open(DATA / "p2p_models.jsonl.gz", "rt") as lines:
        return [
            Row(row["platform"], row["model"], row["pattern"], "", row["ranks"], row["bytes"],
                tuple(row["seconds"]))
            for row in map(json.loads, lines)
            if row["configuration"] == configuration
        ]  # fmt: skip


# Rows of few ranks, whose messages seldom meet, are compared for one of the two files.
@pytest.mark.parametrize(("model", "ranks"), [("default", 16), ("hybrid", 16), ("hybrid", 5)])
@pytest.mark.parametrize("platform", MODEL_PLATFORMS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_as_smpi(configuration, platform, model, ranks, tmp_path):
    """At least 99 % of the times are within 1 %, and all within 5 %."""
    rows = [row for row in stored(configuration)
            if (row.platform, row.model, row.ranks) == (platform, model, ranks)]  # fmt: skip
    assert {row.pattern for row in rows} == set(PATTERNS)
    options = (*CONFIGURATIONS[configuration], "smpi/matching:posted")
    times = predicted("p2p_patterns.py", rows, options, tmp_path)
    comparison = Comparison()
    for row in rows:
        comparison.add(row, times[row.pattern, row.nbytes])
    comparison.check()


@needs_smpi
def test_the_stored_rows_are_smpi_s(tmp_path):
    smpi = Smpi(tmp_path)
    for number, (configuration, options) in enumerate(CONFIGURATIONS.items()):
        for row in stored(configuration)[number::60]:
            made = smpi.seconds(
                row.platform, row.model, row.ranks, row.pattern, row.nbytes, options
            )
            assert made == pytest.approx(row.seconds, rel=1e-9), row.label
