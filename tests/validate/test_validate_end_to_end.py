"""The script under a real MPI on two ranks, and the page of its results in a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.validate.recording import read
from tests.analysis import browser

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny recording, as the jobs of mpiexec write it."""
    if shutil.which("mpiexec") is None:
        pytest.skip("mpiexec of a real MPI is not installed")
    directory = tmp_path_factory.mktemp("validate")
    words = ("--class", "S", "--largest", "4KiB", "--repeats", "2", "--elements", "1000")
    script = directory / "tiny.py"
    assert (
        status_of(("validate", "script", "-o", str(script), "--python", sys.executable, *words))
        == 0
    )
    done = subprocess.run(
        ["bash", "tiny.mpiexec.sh"], cwd=directory, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr
    return directory / "tiny.jsonl"


def test_two_ranks_leave_every_case(recording: Path) -> None:
    found = read([str(recording)])
    one, two = found.jobs
    assert (one.layout, two.layout) == ("1 x 1", "1 x 2")
    programs = {"npb_ep", "npb_cg", "npb_ft", "npb_mg", "jacobi2d"}
    assert {case for case, _ in one.times} == {"triad", *programs}
    assert {case for case, _ in two.times} == {
        "latency", "bandwidth", "bidirectional", "message_rate", "allreduce", "alltoall", "triad",
        *programs,
    }  # fmt: skip
    assert {size for case, size in two.times if case == "latency"} == {1 << k for k in range(13)}
    assert all(len(two.times[name, 0].processor) == 2 for name in programs)
    assert two.facts["mpi"] and two.facts["processor"]
    assert found.remarks == [] and two.complete


def test_the_page_shows_them(
    recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "page.html"
    words = ("--platform", "cluster", "--repeats", "1", "--json", "-o", str(output))
    assert status_of(("validate", str(recording), *words)) == 0
    facts = json.loads(capfd.readouterr().out)
    # A case has a figure of each size and layout; the triad and five programs have two layouts.
    cases = [row["case"] for row in facts["rows"]]
    assert (cases.count("latency"), cases.count("triad"), cases.count("npb_cg")) == (13, 2, 2)
    assert all(row["predicted"] > 0 and row["measured"] > 0 for row in facts["rows"])
    if browser.find() is None:
        pytest.skip("shows pages in Chromium, which is not installed")
    for width, scheme in ((1280, "light"), (390, "dark")):
        with browser.Browser(tmp_path / scheme, width, 900) as shown:
            feature = {"name": "prefers-color-scheme", "value": scheme}
            shown.send("Emulation.setEmulatedMedia", features=[feature])
            shown.send("Page.navigate", url=f"file://{output}")
            ready = "document.readyState === 'complete' && document.documentElement.dataset.theme"
            theme = None
            for _ in range(600):
                theme = shown.run(f"new Promise(r => setTimeout(() => r({ready}), 50))")
                if theme:
                    break
            assert theme == scheme
            assert shown.run("document.documentElement.scrollWidth <= innerWidth")
            assert shown.run("document.querySelectorAll('svg').length") == 6
            assert shown.errors == []
