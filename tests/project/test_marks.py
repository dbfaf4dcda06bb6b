"""Each test is fast, slow or one of peers, and fast ones need little."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]


def test_each_test_has_one_mark(request: pytest.FixtureRequest) -> None:
    kinds = {"fast", "slow", "peers"}
    for item in request.session.items:
        assert len(kinds & {mark.name for mark in item.iter_markers()}) == 1, item.nodeid


def test_each_package_has_a_folder_of_tests() -> None:
    packages = [path.parent for path in (ROOT / "pysmpi").glob("*/__init__.py")]
    assert len(packages) > 30
    for package in packages:
        tests = list((ROOT / "tests" / package.name).rglob("test_*.py"))
        assert tests, f"tests/{package.name} has no tests"


class Item:
    """The part of a test that the rule reads."""

    def __init__(self, place: str, *fixtures: str, own: str = "") -> None:
        self.path, self.fixturenames = ROOT / "tests" / place, fixtures
        self.marks = [own] if own else []
        self.add_marker = self.marks.append

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


def test_the_folder_or_the_fixture_or_an_own_mark_says_it(pytestconfig: pytest.Config) -> None:
    (rule,) = (one for one in pytestconfig.pluginmanager.get_plugins() if hasattr(one, "KINDS"))
    items = [
        Item("kernel/test_one.py"), Item("kernel/test_one.py", own="slow"),
        Item("mpi/test_two.py"), Item("cli/test_three.py"),
        Item("apps/test_four.py", "mpiexec"), Item("differential/test_five.py"),
        Item("explore/test_zero.py"),
    ]  # fmt: skip
    alone = list(items)
    rule.pytest_collection_modifyitems(SimpleNamespace(), alone)
    assert alone == items
    marks = [mark for item in items for mark in item.marks]
    assert marks == ["fast", "slow", "fast", "slow", "peers", "peers", "slow"]
    beside_another = SimpleNamespace(workerinput={})
    rule.pytest_collection_modifyitems(beside_another, alone)
    names = [item.path.stem for item in alone]
    assert names == [
        "test_zero", "test_four", "test_five", "test_one", "test_one", "test_three", "test_two"
    ]  # fmt: skip


def test_fast_tests_pass_without_the_other_packages_and_without_processes() -> None:
    """The first test of each file; every fast test is refused processes in each run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "fast", "-p", "no:cacheprovider",
         "-p", "no:pytest_cov", "-p", "tests.fast_tests"],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[5-9]\d passed|\d\d\d passed", done.stdout), done.stdout


def test_fast_tests_that_need_more_fail(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "otf2", raising=False)  # as if no test had loaded it
    pytester.makeconftest(
        """
        import pytest
        from tests.fast_tests import nothing_else

        @pytest.fixture(autouse=True)
        def alone():
            with nothing_else():
                yield
        """
    )
    pytester.makepyfile(
        """
        def test_process():
            import subprocess
            subprocess.run(["true"])

        def test_package():
            import otf2

        def test_network():
            import urllib.request
            urllib.request.urlopen("http://pysmpi.invalid")
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=3)
