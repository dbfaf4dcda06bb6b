"""The comparison of `published.py`, and one published suite with the newest pytest.

`python -m tests.pytest_plugin.published` runs all suites with ten versions of pytest.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.packages.environments import NoNetwork
from tests.pytest_plugin.published import (
    SUITES,
    VERSIONS,
    Outcomes,
    Suite,
    compare,
    differences,
    merged,
    read,
)

SUITE = Suite("example", "1.0", "tests", different={"worker": "workers stay"})

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_same[ranks=3]" />
<testcase classname="tests.test_a" name="test_letter[x-ranks=3]"><failure /></testcase>
<testcase classname="tests.test_a" name="test_worker"><skipped /></testcase>
<testcase classname="tests.test_a" name="test_setup[Rank 2]"><error /></testcase>
</testsuite></testsuites>"""


def test_reports_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "results.0.xml"
    path.write_text(REPORT)
    report = read(path, SUITE)
    assert report == [
        ("tests.test_a::test_same", "passed"),
        ("tests.test_a::test_letter[x]", "failed"),
        ("tests.test_a::test_worker", "skipped"),
        ("tests.test_a::test_setup", "error"),
    ]
    path.write_text("<testsuites>")
    assert read(path, SUITE) == []
    other = [("tests.test_a::test_same", "failed"), ("tests.test_a::test_worker", "passed")]
    outcomes = merged([report, other])
    assert outcomes["tests.test_a::test_same"] == "failed"
    assert outcomes["tests.test_a::test_worker"] == "passed"


def test_differences_without_a_reason() -> None:
    mpich = Outcomes({"test_one": "passed", "test_worker": "passed", "test_two": "failed"}, 1.0, "")
    ours = Outcomes({"test_one": "failed", "test_worker": "failed", "test_two": "failed"}, 1.0, "")
    assert differences(SUITE, mpich, ours) == ["test_one: MPICH passed, pysmpi failed"]
    del ours.tests["test_one"]
    ours.trouble = "does not end"
    assert differences(SUITE, mpich, ours) == [
        "test_one: MPICH passed, pysmpi not run",
        "all: MPICH ends, pysmpi does not end",
    ]


@pytest.mark.peers
def test_a_published_suite() -> None:
    try:
        mpich, ours, lines = compare(SUITES[0], VERSIONS[-1])
    except NoNetwork as error:
        if os.environ.get("PYSMPI_REQUIRE_SUITES"):
            raise
        pytest.skip(str(error))
    assert not lines, ours.said
    assert len(ours.tests) == 23 and set(mpich.tests.values()) == {"passed"}
