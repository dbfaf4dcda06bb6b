"""`python -m tests.pytest_plugin.versions`: one project under every minor version of pytest.

Each version is in a virtual environment of its own, in the cache of tests/packages. The project
has `conftest.py` files at its root, below it and nested, in packages and in plain folders, with
fixtures of all scopes. Each case is a command line of pytest with its outcome. `--mpich` shows that
the outcome under `mpiexec -n 2` is the same.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.packages.environments import CHECKOUT, Environments, NoNetwork, cache_folder

VERSIONS = ("8.0", "8.1", "8.2", "8.3", "8.4", "9.0", "9.1", "9.2")
PLUGINS = ("pytest-timeout", "pytest-randomly", "pytest-asyncio", "pytest-cov", "pytest-xdist")

PROJECT = {
    "conftest.py": """
        import pytest

        pytest_plugins = ["helpers.extra"]
        made = []

        def pytest_addoption(parser):
            parser.addoption("--flavour", default="plain")

        def pytest_configure(config):
            config.addinivalue_line("markers", "slow: takes long")

        @pytest.fixture(scope="session")
        def flavour(request):
            return request.config.getoption("--flavour")

        @pytest.fixture
        def level():
            return ["root"]

        @pytest.fixture(autouse=True)
        def counted():
            made.append(1)
            yield
            assert made == [1]
            made.pop()
        """,
    "helpers/__init__.py": "",
    "helpers/extra.py": """
        import pytest

        @pytest.fixture
        def extra(comm):
            return comm.size
        """,
    "test_root.py": """
        import pytest

        @pytest.fixture
        def here(level):
            return [*level, "file"]

        @pytest.fixture(scope="class")
        def inside(comm):
            return comm.allreduce(1)

        class TestInClass:
            @pytest.fixture
            def level(self, level):
                return [*level, "class"]

            @pytest.mark.mpi(ranks=2)
            def test_class_fixture(self, comm, inside, level):
                assert inside == 2 and level == ["root", "class"]

            @pytest.mark.mpi(ranks=2)
            @pytest.mark.slow
            def test_again(self, comm, inside):
                assert inside == 2

        @pytest.mark.mpi(ranks=2)
        def test_same_file(comm, here, extra, flavour):
            assert here == ["root", "file"] and extra == 2 and flavour in ("plain", "sweet")

        def test_serial(here):
            assert here == ["root", "file"]
        """,
    "tests/conftest.py": """
        import pytest
        from mpi4py import MPI

        @pytest.fixture
        def data():
            return 7

        @pytest.fixture
        def level(level):
            return [*level, "tests"]

        @pytest.fixture(scope="session")
        def everybody(comm):
            yield comm.allgather(MPI.COMM_WORLD.rank)
            assert comm.allreduce(1) == comm.size

        @pytest.fixture(scope="module", autouse=True)
        def begun(comm):
            return comm.bcast("begun", root=0)

        @pytest.fixture(params=["a", "b"])
        def letter(request):
            return request.param
        """,
    "tests/test_it.py": """
        import pytest

        @pytest.mark.mpi(ranks=2)
        def test_fixtures(comm, data, level, everybody, begun, extra):
            assert data == 7 and level == ["root", "tests"] and everybody == [0, 1]
            assert begun == "begun" and extra == 2

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.parametrize("number", [1, 2])
        def test_parameters(comm, letter, number):
            assert comm.bcast((letter, number), root=1) == (letter, number)

        @pytest.mark.mpi(ranks=2)
        def test_by_name(comm, request):
            assert request.getfixturevalue("data") == 7

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.usefixtures("data")
        def test_used(comm, mpi_tmp_path, capsys, monkeypatch):
            print(comm.rank)
            assert capsys.readouterr().out == f"{comm.rank}\\n"
            assert len(set(comm.allgather(str(mpi_tmp_path)))) == 1

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.xfail(strict=True)
        def test_expected_failure(comm):
            assert comm.rank > 5
        """,
    "tests/test_other.py": """
        import pytest

        pytestmark = pytest.mark.mpi(ranks=2)

        def test_other_file(comm, data, level, everybody):
            assert data == 7 and level == ["root", "tests"] and len(everybody) == 2

        def test_skipped(comm):
            pytest.skip("not today")
        """,
    "tests/deep/conftest.py": """
        import pytest

        @pytest.fixture
        def level(level):
            return [*level, "deep"]

        @pytest.fixture(scope="package")
        def parcel(comm):
            return comm.allreduce(2)
        """,
    "tests/deep/test_deep.py": """
        import pytest

        @pytest.mark.mpi(ranks=2)
        def test_deep(comm, data, level, parcel):
            assert level == ["root", "tests", "deep"] and data == 7 and parcel == 4
        """,
    "tests/deep/deeper/test_deeper.py": """
        import pytest

        @pytest.mark.mpi(ranks=2)
        def test_deeper(comm, level, parcel):
            assert level == ["root", "tests", "deep"] and parcel == 4
        """,
    "pack/__init__.py": "",
    "pack/common.py": """
        def twice(number):
            \"\"\"
            >>> twice(2)
            4
            \"\"\"
            return 2 * number
        """,
    "pack/conftest.py": """
        import pytest

        from pack.common import twice

        @pytest.fixture(scope="package")
        def pair(comm):
            return twice(comm.size)

        @pytest.fixture
        def level(level):
            return [*level, "pack"]
        """,
    "pack/test_same_name.py": """
        import pytest

        from .common import twice

        @pytest.mark.mpi(ranks=2)
        def test_package(comm, pair, level):
            assert pair == twice(2) and level == ["root", "pack"]
        """,
    "pack/sub/__init__.py": "",
    "pack/sub/conftest.py": """
        import pytest

        @pytest.fixture
        def level(level):
            return [*level, "sub"]
        """,
    "pack/sub/test_same_name.py": """
        import pytest

        from ..common import twice

        @pytest.mark.mpi(ranks=2)
        def test_package(comm, pair, level):
            assert pair == twice(2) and level == ["root", "pack", "sub"]
        """,
    "unit/test_unit.py": """
        import unittest

        from mpi4py import MPI

        class TestUnit(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.size = MPI.COMM_WORLD.allreduce(1)

            def test_size(self):
                self.assertEqual(self.size, MPI.COMM_WORLD.size)
        """,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command line of pytest, the files that it needs besides the project, and its outcome."""

    options: str
    outcome: Mapping[str, int]
    files: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    least: str = "8.0"  # the first version that has it
    needs: str = ""  # a plugin
    compared: bool = True  # whether mpiexec gives the same


ALL = {"passed": 17, "skipped": 1, "xfailed": 1}
TESTS = {"passed": 10, "skipped": 1, "xfailed": 1}
# The fixture `level` of the root is out of reach: that of the folder has nothing to extend.
WITHOUT_ROOT = {"passed": 6, "skipped": 1, "xfailed": 1, "errors": 4}
DEEP = {"passed": 2}
PACK = {"passed": 2}

CASES = {
    "everything": Case("", ALL),
    "a folder": Case("tests", TESTS),
    "two folders": Case("tests/deep pack", {"passed": 4}),
    "folders in another order": Case("pack tests", {**TESTS, "passed": 12}),
    "a nested folder": Case("tests/deep/deeper", {"passed": 1}),
    "one test": Case("tests/deep/test_deep.py::test_deep", {"passed": 1}),
    "two tests of two files": Case(
        "tests/test_other.py::test_other_file tests/deep/test_deep.py", {"passed": 2}
    ),
    "from a folder": Case("", WITHOUT_ROOT, folder="tests"),
    "from a nested folder": Case("..", WITHOUT_ROOT, folder="tests/deep"),
    "file of settings": Case("", ALL, {"pytest.ini": "[pytest]\n"}),
    "settings with folders": Case(
        "", {**TESTS, "passed": 12}, {"pytest.ini": "[pytest]\ntestpaths = tests pack\n"}
    ),
    "settings of the project": Case(
        "", PACK,
        {"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['pack']\naddopts = '-ra'\n"},
    ),
    "settings below the root": Case("tests", WITHOUT_ROOT, {"tests/pytest.ini": "[pytest]\n"}),
    "other settings": Case("-c other.ini", ALL, {"other.ini": "[pytest]\n"}),
    "settings of tox": Case("tests", TESTS, {"tox.ini": "[pytest]\naddopts = -q\n"}),
    "pytest.toml": Case(
        "", TESTS, {"pytest.toml": "[pytest]\ntestpaths = ['tests']\n"}, least="9.0"
    ),
    "another root": Case("--rootdir tests tests", WITHOUT_ROOT),
    "root below": Case(
        "--rootdir tests/deep tests", {"failed": 1, "skipped": 1, "xfailed": 1, "errors": 7}
    ),
    "conftest cut off": Case(
        "--confcutdir tests/deep tests/deep/test_deep.py", {"errors": 1}
    ),
    "append": Case("--import-mode append pack", PACK),
    "importlib": Case("--import-mode importlib tests pack", {**TESTS, "passed": 12}),
    "warnings are errors": Case("-W error -p no:asyncio", ALL),
    "warnings are errors in settings": Case(
        "-p no:asyncio", ALL, {"pytest.ini": "[pytest]\nfilterwarnings = error\n"}
    ),
    "strict": Case("--strict-markers --strict-config", ALL),
    "chosen by name": Case("-k 'deep or parameters'", {"passed": 6, "deselected": 13}),
    "chosen by mark": Case("-m slow", {"passed": 1, "deselected": 18}),
    "option of conftest": Case("--flavour sweet test_root.py", {"passed": 4}),
    "first failure": Case(
        "-x extra_tests", {"failed": 1},
        {"extra_tests/test_fails.py": """
            import pytest

            @pytest.mark.mpi(ranks=2)
            def test_fails(comm, level):
                assert level == []

            @pytest.mark.mpi(ranks=2)
            def test_not_run(comm):
                pass
            """},
    ),
    "doctest": Case("--doctest-modules pack", {"passed": 3}),
    "all on ranks": Case("--with-mpi --mpi-ranks 2 unit test_root.py", {"passed": 5}),
    "xdist": Case("-n 2", ALL, needs="xdist", compared=False),
    "coverage": Case("--cov pack pack", PACK, needs="pytest_cov", compared=False),
    "timeout": Case("--timeout 100 tests", TESTS, needs="pytest_timeout"),
    "randomly": Case("-p randomly -p 'no:cacheprovider' tests pack", {**TESTS, "passed": 12},
                     needs="pytest_randomly", compared=False),
    "asyncio": Case(
        "extra_tests", {"passed": 1},
        {"extra_tests/test_async.py": """
            import asyncio

            import pytest

            @pytest.mark.mpi(ranks=2)
            @pytest.mark.asyncio
            async def test_async(comm, level):
                await asyncio.sleep(0.01)
                assert level == ["root"] and comm.allreduce(1) == 2
            """}, needs="pytest_asyncio",
    ),
}  # fmt: skip

# Those that the test suite runs.
QUICK = ("root below", "warnings are errors in settings")


def write(case: Case, folder: Path) -> None:
    """Write the project of a case."""
    for name, source in {**PROJECT, **case.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source).lstrip("\n"), encoding="utf-8")


def run(python: Path, case: Case, mpich: bool = False) -> tuple[dict[str, int], str]:
    """The outcome of a case, and what pytest has printed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "project"
        write(case, folder)
        settings = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        settings["PYTHONDONTWRITEBYTECODE"] = "1"
        randomly = [] if case.needs == "pytest_randomly" else ["-p", "no:randomly"]
        command = [
            str(python), "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *randomly,
            *_words(case.options),
        ]  # fmt: skip
        if mpich:
            settings["LD_LIBRARY_PATH"] = str(Path(sysconfig.get_path("data")) / "lib")
            launcher = Path(sysconfig.get_path("scripts")) / "mpiexec"
            command = [str(launcher), "-n", "2", *command]
        done = subprocess.run(
            command, cwd=folder / case.folder, env=settings, capture_output=True, text=True,
            timeout=600,
        )  # fmt: skip
    return outcome(done.stdout), done.stdout + done.stderr


def outcome(said: str) -> dict[str, int]:
    """The numbers in the last line of pytest."""
    lines = [line for line in said.splitlines() if re.search(r"\d+ \w+.* in \d", line)]
    numbers = re.findall(r"(\d+) ([a-z]+)", lines[-1].rpartition(" in ")[0]) if lines else []
    plural = {"error": "errors"}
    return {plural.get(name, name): int(number) for number, name in numbers if "warn" not in name}


def _words(options: str) -> list[str]:
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", options)]


def environment(version: str) -> Path:
    """The interpreter of an environment with a version of pytest, its plugins, and this pysmpi."""
    environments = Environments(cache_folder())
    path = environments.path(f"pytest-{version}")
    python = path / "bin" / "python"
    stamp = path / "installed.txt"
    if not stamp.exists():
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        _call([sys.executable, "-m", "venv", "--without-pip", str(path)])
        _call([sys.executable, "-m", "pip", "--python", str(python), "install", "-q",
               "--disable-pip-version-check", "--only-binary", ":all:", f"pytest=={version}.*",
               *PLUGINS])  # fmt: skip
        stamp.write_text(version)
    site = next(path.glob("lib/python*/site-packages"))
    # What the environment has not comes from this one: numpy, mpi4py, pysmpi's dependencies.
    places = [str(CHECKOUT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (site / "pysmpi_tests.pth").write_text("\n".join(dict.fromkeys(places)) + "\n")
    return python


def _call(command: Sequence[str]) -> None:
    nothing = subprocess.DEVNULL
    done = subprocess.run(command, capture_output=True, text=True, stdin=nothing, timeout=300)
    if done.returncode:
        raise NoNetwork(f"cannot make an environment of pytest: {done.stderr[-800:]}")


def chosen(version: str, names: Sequence[str]) -> dict[str, Case]:
    """The cases that a version has."""
    number = tuple(map(int, version.split(".")))
    return {
        name: case
        for name, case in CASES.items()
        if name in names and tuple(map(int, case.least.split("."))) <= number
    }


def main() -> int:
    """Run the matrix; the exit status is 1 if an outcome is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.pytest_plugin.versions",
        description="Run one project under every minor version of pytest, and check the outcomes.",
    )
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION",
                        help=f"versions of pytest (default: {' '.join(VERSIONS)})")  # fmt: skip
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case")
    parser.add_argument("--mpich", action="store_true",
                        help="under mpiexec -n 2 in the place of pysmpi")  # fmt: skip
    given = parser.parse_args()
    wrong = 0
    for version in given.versions:
        python = environment(version)
        cases = chosen(version, given.case or list(CASES))
        right = 0
        for name, case in cases.items():
            if given.mpich and not case.compared:
                continue
            found, said = run(python, case, given.mpich)
            if found == dict(case.outcome):
                right += 1
                continue
            wrong += 1
            print(f"pytest {version}, {name}: expected {dict(case.outcome)}, got {found}")
            if given.case:
                print(said)
        print(f"pytest {version}: {right} cases right", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
