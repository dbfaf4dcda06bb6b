"""`pysmpi demo` and `pysmpi doctor`: the first commands of a new user."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pysmpi.cli.demo import DEMOS, PROGRAMS
from pysmpi.cli.doctor import IN_C, IN_C_ON_LINUX
from pysmpi.cli.main import COMMANDS, GROUPS
from pysmpi.cli.run import command as run
from pysmpi.cli.run_options import SECTIONS

ROOT = Path(__file__).resolve().parents[2]

Command = Callable[..., "subprocess.CompletedProcess[str]"]

# A line of each result that only the simulated machine can give.
RESULTS = {
    "deadlock": ["rank 1 has the numbers of rank 0", "PSM101 deadlock", "deadlock.py:13"],
    "race": ["the results came in the expected order", "'a result of worker 2'", "repeat: "],
    "contention": ["1 pairs at once:   1245 MB/s", "8 pairs at once:    156 MB/s"],
    "allreduce": ["selector ompi5", "selector mpich", "Allreduce of 1,048,576 B on 16 ranks"],
    "halo": ["step 20: heat 102400.0", "critical path: ", "what if: "],
}


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_shows_its_program_its_result_and_what_to_try(name: str, pysmpi: Command) -> None:
    done = pysmpi("demo", name)
    assert done.returncode == 0 and done.stderr == ""
    for line in (PROGRAMS / DEMOS[name].files[0]).read_text().splitlines():
        assert line in done.stdout
    for text in RESULTS[name]:
        assert text in done.stdout
    assert "To try next:" in done.stdout and "bug in pysmpi" not in done.stdout


def test_demos_are_listed_and_saved(pysmpi: Command, tmp_path: Path) -> None:
    listed = pysmpi("demo")
    assert [line.split()[0] for line in listed.stdout.splitlines() if line[:1].strip()] == [
        *DEMOS, "pysmpi",
    ]  # fmt: skip
    assert pysmpi("demo", "contention", "--save").returncode == 0
    saved = sorted(path.name for path in tmp_path.iterdir())
    assert saved == ["contention.py", "two-switches.yaml"]
    (tmp_path / "contention.py").write_text("mine")
    again = pysmpi("demo", "contention", "--save")
    assert again.returncode == 2 and "contention.py is there already" in again.stderr
    assert (tmp_path / "contention.py").read_text() == "mine"
    wrong = pysmpi("demo", "deadlok")
    assert wrong.returncode == 2 and "did you mean deadlock?" in wrong.stderr


def test_the_commands_to_try_next_work(pysmpi: Command, tmp_path: Path) -> None:
    for name, demo in DEMOS.items():
        assert pysmpi("demo", name, "--save").returncode == 0
        for line in demo.further:
            if line.startswith("pysmpi "):
                done = pysmpi(*line.partition("#")[0].split()[1:])
                expected = 3 if "buffering" in line else 0
                assert done.returncode == expected, (line, done.stderr)


def test_the_groups_of_help_have_each_command_once() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


def test_doctor_finds_nothing_wrong_here(pysmpi: Command) -> None:
    done = pysmpi("doctor", "--json")
    conditions = {condition["subject"]: condition for condition in json.loads(done.stdout)}
    assert done.returncode == 0
    assert conditions["a run of four ranks"]["text"] == "right"
    assert conditions["packages"]["state"] == "ok" and "greenlet" in conditions["packages"]["text"]
    assert str(ROOT) in conditions["pysmpi"]["text"]


def test_doctor_looks_for_each_part_in_c() -> None:
    (parts,) = [
        ast.literal_eval(line.value)
        for line in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "ENGINE"
    ]
    sources = {
        str(path.relative_to(ROOT).with_suffix("")).replace(os.sep, ".")
        for path in (ROOT / "pysmpi").rglob("*.c")
        if path.parent.name != "abi" or path.stem not in {*parts, "entries"} - {"engine"}
    }
    assert sources == {*IN_C, *IN_C_ON_LINUX}


def test_doctor_names_a_package_that_is_missing(tmp_path: Path) -> None:
    hidden = (
        "import sys\n"
        "from importlib import metadata\n"
        "known = metadata.version\n"
        "def version(name):\n"
        "    if name == 'greenlet':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return known(name)\n"
        "metadata.version = version\n"
        "from pysmpi.cli.main import main\n"
        "main(['doctor'])\n"
    )
    command = [sys.executable, "-c", hidden]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 1
    assert "wrong  packages: missing: greenlet" in done.stdout
    assert "pip install greenlet" in done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory whose sources hide an installed pysmpi with a compiled kernel."""
    site = tmp_path / "site-packages"
    kernel = site / "pysmpi" / "kernel"
    kernel.mkdir(parents=True)
    from importlib.machinery import EXTENSION_SUFFIXES

    (kernel / f"engine{EXTENSION_SUFFIXES[0]}").touch()
    return site


def test_sources_that_hide_a_compiled_package_say_so(clone: Path) -> None:
    code = (
        "import site, sys\n"
        f"site.getsitepackages = lambda: [{str(clone)!r}]\n"
        "from pysmpi.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT,
            env={**os.environ, "PYSMPI_INTERPRETED": "1"}, timeout=300,
        )  # fmt: skip

    done = run("run", "-c", "pass")
    assert f"that of {clone}/pysmpi is compiled: run it from another directory" in done.stderr
    assert "interpreted; that of" in run("doctor").stdout


def test_the_sections_of_help_have_each_option_of_run_once() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(str(param.name) for param in run.params)


def test_help_shows_the_options_in_sections(pysmpi: Command) -> None:
    shown = pysmpi("run", "--help").stdout
    titles = [line.rstrip(":") for line in shown.splitlines() if line[:1].isupper()]
    assert titles[1:] == [*SECTIONS, "More"]
    assert shown.index("Large jobs:") < shown.index("--fold") < shown.index("More:")
