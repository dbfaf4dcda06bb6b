"""Published packages run under MPICH and under pysmpi, and give the same results.

Some that are in the environment of the tests run always. PYSMPI_ALL_SUITES=1 runs ten others, and
`python -m tests.packages` all; their requirements are installed from the package index into
`.cache/packages`, or `$PYSMPI_PACKAGES_CACHE`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from . import compare, table
from .__main__ import PAGE, RESULTS, documented
from .conftest import LEFT_OUT, needs_installation
from .entries import Entry, ListError, Run, entries
from .environments import Environments, NoNetwork, cache_folder
from .running import Result, _busy_with_others, run_entry

ALL = entries()
QUICK = [entry for entry in ALL if entry.quick]
#: Packages that the tests need themselves, or that come with one that they need.
HERE = [entry for entry in ALL if entry.package in ("attrs", "click", "cloudpickle", "rich")]


@pytest.mark.parametrize("entry", HERE, ids=[entry.package for entry in HERE])
def test_installed_package_gives_what_it_gives_under_mpich(entry: Entry, tmp_path: Path) -> None:
    """In the environment of the tests, whatever the version of the package."""
    if importlib.util.find_spec(entry.package.replace("attrs", "attr")) is None:
        pytest.skip(f"{entry.package} is not installed")
    result = run_entry(entry, Environments(tmp_path), Path(sys.prefix))
    assert result.invalid is None, result.invalid
    assert result.equal, f"{result.difference} [{result.message}]"


@pytest.fixture(scope="module")
def environments() -> tuple[Environments, dict[str, Path]]:
    """The environments of the ten, with all requirements."""
    made = Environments(cache_folder())
    paths: dict[str, Path] = {}
    try:
        for name in {entry.environment for entry in QUICK}:
            paths[name] = made.prepare(name, [one for one in QUICK if one.environment == name])
    except NoNetwork as error:
        LEFT_OUT.append(str(error))
        pytest.skip(str(error))
    return made, paths


@needs_installation
@pytest.mark.parametrize("entry", QUICK, ids=[entry.package for entry in QUICK])
def test_package_gives_what_it_gives_under_mpich(
    entry: Entry, environments: tuple[Environments, dict[str, Path]]
) -> None:
    result = run_entry(entry, environments[0], environments[1][entry.environment])
    assert result.invalid is None, result.invalid
    assert result.equal, f"{result.difference} [{result.message}]"


def test_ten_are_quick() -> None:
    assert len(QUICK) == 10


def test_lines_in_any_order_are_equal() -> None:
    assert compare.difference(["a 1", "b 2"], ["b 2", "a 1"]) is None


def test_a_line_too_few_is_a_difference() -> None:
    found = compare.difference(["a 1", "a 1"], ["a 1"])
    assert found == "1 lines differ: MPICH 'a 1', pysmpi prints no such line"


def test_numbers_are_compared_within_the_tolerance() -> None:
    one, other = ["x = 1.0000001, 2e-3 [7]"], ["x = 1.0000002, 0.002 [7]"]
    assert compare.difference(one, other, relative=1e-6) is None
    assert compare.difference(one, other, relative=1e-8) is not None
    assert compare.difference(["n 1"], ["n 2"]) is not None
    assert compare.difference(["n1 1.0"], ["n2 1.0"], relative=0.5) is not None


def test_equal_numbers_meet_whatever_their_order() -> None:
    one = ["t 1.0", "t 1.1", "t 5"]
    assert compare.difference(one, ["t 5", "t 1.1000001", "t 1.0000001"], relative=1e-5) is None


def test_rules_change_and_leave_out_lines() -> None:
    kept = compare.lines(
        "took 3.5 s\nat 0x7f00aa11bb22\n\nnoise\n",
        ignore=["noise"],
        replace=["seconds", "addresses"],
    )
    assert kept == ["took <time>", "at <address>"]


def test_an_entry_that_is_refused_must_be_so_in_the_words_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_text(
        "[{package: p, version: '1', field: f, environment: e, unequal: why, says: 'cannot be',"
        " runs: [{code: '1'}]}]"
    )
    (entry,) = entries(tmp_path)
    said = "it cannot be simulated"
    told = Result("p", "1", False, "ok", "status 2", (1.0, 1.0), "differs", said)
    silent = Result("p", "1", False, "ok", "no end", (1.0, 1.0), "differs", None)
    same = Result("p", "1", True, "ok", "ok", (1.0, 1.0))
    assert table.failure(entry, told) is None
    assert "expected 'cannot be'" in str(table.failure(entry, silent))
    assert "equal now" in str(table.failure(entry, same))


@pytest.mark.parametrize(
    "change, says",
    [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"version": 3}, "expected text in quotes, got 3"),
        ({"runs": []}, "runs: expected a sequence of runs"),
        ({"says": "no"}, "says: only an entry that is unequal has it"),
        ({"runs": [{"args": []}]}, "expected one of program, module, code, pytest"),
        ({"runs": [{"code": "1", "timeout": "long"}]}, "timeout: expected a int, got 'long'"),
        ({"runs": [{"code": "1", "ignore": ["("]}]}, "ignore: '('"),
    ],
)
def test_a_mistake_in_the_list_is_named(tmp_path: Path, change: dict, says: str) -> None:
    import yaml

    row = {"package": "p", "version": "1", "field": "f", "environment": "e",
           "runs": [{"code": "print(1)"}], **change}  # fmt: skip
    (tmp_path / "some.yaml").write_text(yaml.safe_dump([row]))
    with pytest.raises(ListError) as caught:
        entries(tmp_path)
    assert "some.yaml, entry 1" in str(caught.value) and says in str(caught.value)


def test_what_others_do_is_noticed() -> None:
    import subprocess
    import sys
    import time

    spin = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    before = _busy_with_others()
    subprocess.run([sys.executable, "-c", spin], check=True, timeout=60)
    own = _busy_with_others() - before
    # A child without a wait so far counts as another process.
    before = _busy_with_others()
    other = subprocess.Popen([sys.executable, "-c", spin])
    end = time.monotonic() + 60
    time.sleep(0.1)
    while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)
    foreign = _busy_with_others() - before
    other.wait()
    assert foreign > 0.4
    assert own >= -0.1 and (_busy_with_others() - before) < foreign


def test_a_resumed_run_begins_with_what_is_quick_and_leaves_out_what_is_done() -> None:
    from .__main__ import remaining

    def entry(name: str, timeout: int = 300) -> Entry:
        run = Run(code="1", timeout=timeout)
        return Entry(name, "1", "f", "e", [run], "some", [])

    def result(name: str, seconds: float, **more: bool) -> Result:
        return Result(name, "1", True, "ok", "ok", (seconds, seconds), **more)

    past = {
        "done": result("done", 1.0),
        "slow": result("slow", 9.0, disturbed=True),
        "quick": result("quick", 2.0, reused=True),
        "old": Result("old", "0", True, "ok", "ok", (5.0, 5.0)),
    }
    listed = [entry("new", 300), entry("slow"), entry("done"), entry("newer", 60), entry("quick"),
              entry("old")]  # fmt: skip
    assert [one.package for one in remaining(listed, past)] == [
        "quick", "old", "slow", "newer", "new",
    ]  # fmt: skip


def test_the_pages_are_those_of_the_list() -> None:
    listed, known = entries(), documented()
    for path, text in ((PAGE, table.page(listed, known)),
                       (RESULTS, table.results_page(listed, known))):  # fmt: skip
        assert path.read_text(encoding="utf-8") == text, "run python -m tests.packages --docs"


def test_a_page_keeps_the_rows_that_no_newer_result_replaces() -> None:
    def entry(name: str, unequal: str | None = None) -> Entry:
        return Entry(name, "1", "f", "e", [Run(code="1")], "some", [], unequal=unequal)

    def result(name: str, seconds: float, **more: bool) -> Result:
        times = (seconds, 1.234 * seconds)
        return Result(name, "1", True, "ok", "ok", times, processor=times, **more)

    refused = Result("refused", "1", False, "ok", "status 2", (0.2, 0.1), message="a | b: no")
    listed = [entry("kept"), entry("timed"), entry("quiet"), entry("broken"), entry("unknown"),
              entry("more"), entry("refused", "calls C")]  # fmt: skip
    first = {
        "kept": result("kept", 0.14), "timed": result("timed", 3.0, reused=True),
        "quiet": result("quiet", 4.0), "broken": result("broken", 5.0), "refused": refused,
        "more": result("more", 6.0),
    }  # fmt: skip

    def pages(results: Mapping[str, Result]) -> str:
        return table.page(listed, results) + table.results_page(listed, results)

    page = pages(first)
    assert "Another 1 packages" in page
    assert pages(table.rows(page)) == page
    second = {
        "timed": result("timed", 30.0), "quiet": result("quiet", 40.0, disturbed=True),
        "broken": Result("broken", "1", False, "ok", "no end", (1.0, 1.0), disturbed=True),
        "more": Result("more", "1", True, "2 × ok", "2 × ok", (9.0, 9.0), disturbed=True),
    }  # fmt: skip
    again = pages(table.merged(listed, table.rows(page), second))
    assert "| f | kept | 1 | ok | ok | yes | 0.1, 0.2 | 1.23 |" in again
    assert "| f | timed | 1 | ok | ok | yes | 30.0, 37.0 | 1.23 |" in again
    assert "| f | quiet | 1 | ok | ok | yes | 4.0, 4.9 | 1.23 |" in again
    assert "| f | broken | 1 | ok | no end | no |  |  |" in again
    assert "| f | more | 1 | 2 × ok | 2 × ok | yes |  |  |" in again
    assert "| refused | calls C | a \\| b: no |" in again
