"""Every block of every page is carried out by a test: by those named here, or in this file.

`test_commands_of_pages.py` and `test_commands_of_the_path.py` run commands, compare what pages show
of their output, and write the files that pages show.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from pysmpi.cli.main import status_of
from pysmpi.platform.check import check as check_platform
from pysmpi.sweeps.study_yaml import read_study
from tests.cli.test_commands_of_pages import DOCS, FENCE, PATH, ROOT, Example, check, examples, run
from tests.cli.test_commands_of_the_path import FILE

PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "CHANGELOG")),
    *sorted(ROOT.glob("*/README.md")),
]

CONTRIBUTING = "tests/project/test_design.py::test_calls_and_formats"
PLATFORMS = "tests/platform/test_platform_docs.py::test_yaml_examples_are_sound_platforms"
GENERATED = "tests/cli/test_cli_docs.py::test_pages_made_from_the_code_are_up_to_date"
ALGORITHMS = (
    "tests/collectives/test_collective_selection.py"
    "::test_algorithms_of_the_docs_in_another_distribution"
)
COHERENCE = "tests/memory/test_coherence_docs.py::test_the_code_runs"

# Blocks that tests elsewhere carry out: the page, a text of the block, and the test.
BY_OTHERS = [
    ("README.md", "result = pysmpi.run", "tests/project/test_house.py::test_readme_example_runs"),
    ("README.md", "-m pytest", "tests/project/test_house.py::test_readme_has_its_two_commands"),
    ("docs/contributing/*.md", ".py\n", CONTRIBUTING),
    ("docs/contributing/extending.md", "[pysmpi.models]", CONTRIBUTING),
    ("docs/contributing/collectives.md", "@algorithm", ALGORITHMS),
    ("docs/contributing/collectives.md", "[project.entry-points", ALGORITHMS),
    ("docs/papers/coherence-reference.md", "assert ", COHERENCE),
    ("docs/papers/coherence-reference.md", "name: ", COHERENCE),
    (
        "docs/papers/coherence-reference.md",
        "careless  NOT SAFE",
        "tests/coherence/test_studies_on_command.py::test_check_says_how_a_table_fails",
    ),
    ("docs/reference/platform*.md", "name: ", PLATFORMS),
    ("docs/reference/nodes.md", "name: ", PLATFORMS),
    ("docs/reference/rails.md", "name: ", PLATFORMS),
    ("docs/reference/platform.md", "load(", "tests/platform/test_platform_docs.py"),
    (
        "docs/reference/placement.md",
        "rank 0=",
        "tests/platform/test_rankfile.py::test_each_rank_has_its_core",
    ),
    (
        "docs/reference/placement.md",
        "communication_graph",
        "tests/analysis/test_mapping.py::test_the_communication_of_a_run_is_a_graph",
    ),
    (
        "docs/reference/faults.md",
        "# noise.yaml",
        "tests/faults/test_noise_files.py::test_the_file_of_the_page_is_read",
    ),
    ("docs/reference/sweep.md", "", "tests/sweeps/test_sweeps.py::test_the_page_has_a_study"),
    ("docs/reference/options.md", "", GENERATED),
    (
        "docs/reference/api.md",
        "%%pysmpi -n 4",
        "tests/reports/test_cells.py::test_a_cell_is_a_program_on_ranks",
    ),
    ("docs/reference/python.md", "", GENERATED),
    (
        "docs/reference/cli.md",
        "pysmpi demo [NAME]",
        "tests/cli/test_cli_docs.py::test_synopsis_has_every_command_and_subcommand",
    ),
    (
        "docs/reference/diagnostics/psm128.md",
        "libc.read",
        "tests/waiting/test_waits_in_c.py::",  # this takes ten seconds
    ),
    (
        "docs/howto/debug-with-an-editor.md",
        "launch.json",
        "tests/debugging/test_prompt.py::",
    ),
]
# Blocks that tests of this file carry out: the page, and a text of the block.
HERE = {
    "declaration": ("docs/contributing/design.md", "def Recv("),
    "marked test of README": ("README.md", "@pytest.mark.mpi"),
    "marked test": ("docs/reference/testing.md", "@pytest.mark.mpi"),
    "table of a selector": ("docs/contributing/collectives.md", "P == 2"),
    "tuned selector": ("docs/reference/collectives.md", "P == 64"),
    "explained platform": ("docs/explanation/accuracy.md", "name: edr"),
    "sound platform": ("docs/reference/platform.md", "Sixteen nodes"),
    "error of a platform": ("docs/reference/platform.md", "lab.yaml:12"),
    "plots": ("docs/howto/sweep-a-study.md", "plots:"),
    "entry points": ("docs/howto/add-your-own.md", "[project.entry-points"),
    "launcher": ("docs/howto/from-mpiexec.md", "LAUNCH="),
    "first platform": ("docs/reference/platform.md", "hosts: node-[0-3]"),
    "lines of a recording": ("docs/reference/recording.md", '["rank"'),
    "workflow": ("packaging/README.md", "uses: pysmpi/pysmpi"),
    "failure": ("docs/reference/testing.md", "would hang under mpiexec"),
    "left operations": ("docs/reference/testing.md", "The test has left operations"),
    "summary": ("docs/reference/run.md", "predicted time"),
    "parts of the time": ("docs/explanation/time.md", "pysmpi: compute"),
    "limit": ("docs/reference/analysis.md", "pysmpi: limit:"),
    "folded memory": ("docs/explanation/folding.md", "pysmpi: folded"),
}
# Blocks that no test can carry out, and the reason.
BY_NONE = {
    ("docs/reference/traces.md", "import pipit"): "no package index has this package",
    ("docs/contributing/tests.md", "PYSMPI_ALL_ORDERS=1"): "takes minutes",
    ("docs/start/install.md", "pip install"): "tests/distribution installs pysmpi",
    ("docs/reference/checkers.md", "made by the package"): "tests/checkers/test_left_out.py has it",
}


@dataclass
class Block:
    """A block of a page."""

    page: str
    line: int
    language: str
    text: str

    def is_of(self, page: str, text: str) -> bool:
        return fnmatch(self.page, page) and text in self.text


def blocks_of(page: Path) -> Iterator[tuple[Block, bool]]:
    """The blocks, each with whether the tests of commands and files carry it out."""
    text = page.read_text(encoding="utf-8")
    commands = examples(page)
    for match in FENCE.finditer(text):
        first, last = (text.count("\n", 0, place) + 1 for place in (match.start(), match.end()))
        block = Block(page.relative_to(ROOT).as_posix(), first, match[1], match[2])
        command = any(first < one.line < last for one in commands)
        shown = any(one.shown == match[2].splitlines() for one in commands)
        if page in PATH:
            file = bool(FILE.match(match[2]))
        else:
            named = re.search(r"`\w+\.py`[^`]*\n\n$", text[: match.start()])
            file = match[1] in ("py", "python") and bool(
                named or re.match(r"# \w+\.py\n", match[2])
            )
        yield block, command or shown or file


BLOCKS = [block for page in PAGES for block, done in blocks_of(page) if not done]


def block(name: str) -> str:
    """The text of the one block of this name in `HERE`."""
    (found,) = (one.text for one in BLOCKS if one.is_of(*HERE[name]))
    return found


# ------------------------------------------------------------------------ examples of diagnostics

DIAGNOSTIC = """\
import ctypes, os, threading
import mpi4py, numpy
"""
WORLD = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
value, data, matrix = comm.rank, numpy.zeros(8), numpy.zeros((8, 16))
"""
WINDOW = "window = MPI.Win.Allocate(64, 8, comm=comm)\n"


def diagnostics() -> list[Block]:
    return [
        one
        for one in BLOCKS
        if one.page.startswith("docs/reference/diagnostics/") and "128" not in one.page
    ]


def test_examples_of_diagnostics_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for one in diagnostics():
        code = Path(one.page).stem
        program = DIAGNOSTIC
        if "import MPI" not in one.text:
            program += WORLD
        if "window" in one.text:
            program += WINDOW
        Path(f"{code}.py").write_text(program + one.text)
        command = ["explore"] if code == "psm107" else ["run", "--check", "all"]
        ranks = 3 if code in ("psm107", "psm121") else 2
        status = status_of([*command, "-n", str(ranks), "--compute", "none", f"{code}.py"])
        out, err = capfd.readouterr()
        assert f"{code.upper()} " in out + err and (status or code == "psm107"), out + err
    assert len(diagnostics()) >= 24


# --------------------------------------------------------------------------- the gallery of errors

GALLERY = "docs/howto/gallery.md"
# What the advice of the gallery replaces in each program.
REPLACED = {
    "head_to_head.py": ["comm.Send(data, dest=other)\ncomm.Recv(got, source=other)\n"],
    "touched.py": ["    data[0] = 7\n    request.Wait()\n"],
    "branch.py": ["if comm.rank == 0:\n    comm.Barrier()\ntotal = comm.allreduce(comm.rank)\n"],
    "race.py": ["    first = comm.recv(source=MPI.ANY_SOURCE)\n    second = comm.recv(source=2)\n"],
    "window.py": ["window.Put(data, 0)\n"],
    "forgotten.py": ['    comm.isend("done", dest=1)\n', ""],
}


def test_programs_of_the_gallery_are_right_with_its_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / GALLERY).read_text(encoding="utf-8")
    programs = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text, re.M | re.S))
    advice = [one.text for one in BLOCKS if one.page == GALLERY]
    assert set(programs) == set(REPLACED) and len(advice) == len(REPLACED)
    for (name, program), right in zip(programs.items(), advice):
        for old, new in zip(REPLACED[name], right.split("...\n"), strict=True):
            assert program.count(old) == 1 or not old
            indent = re.match(" *", old)[0] if old else ""  # type: ignore[index]
            new = re.sub("^", indent, new.rstrip("\n"), flags=re.MULTILINE) + "\n"
            program = program.replace(old, new) if old else program + new
        Path(name).write_text(program)
        ranks = "3" if name == "race.py" else "2"
        words = ["run", "-q", "-n", ranks, "--check", "all", "--compute", "none", name]
        assert status_of(words) == 0, capfd.readouterr()
        out, err = capfd.readouterr()
        assert "PSM" not in out + err, f"{name}: {out}{err}"


# --------------------------------------------------------------------------------- pieces of Python

# What is there before a piece of Python, by page.
BEFORE = {
    "docs/explanation/folding.md": "rows, columns = 6, 4",
    "docs/explanation/memory.md": "import numpy, pysmpi; matrix, halo = numpy.ones((2, 4, 4))",
    "docs/explanation/shadow.md": (
        "import numpy; rows = numpy.ones((3, 4)); field = rows; relax = step = numpy.sqrt"
    ),
    "docs/reference/api.md": (
        "import pysmpi\n"
        "def main(scale=1):\n"
        "    from mpi4py import MPI\n"
        "    return MPI.COMM_WORLD.allreduce(scale)\n"
        "result = pysmpi.run(main, 2, compute='none')"
    ),
    "docs/reference/checkers.md": "",
    "docs/reference/explore.md": "",
    "docs/reference/recording.md": (
        "import pysmpi\n"
        "def program():\n"
        "    from mpi4py import MPI\n"
        "    comm = MPI.COMM_WORLD\n"
        "    for step in range(50):\n"
        "        comm.sendrecv(step, (comm.rank + 1) % 4, source=(comm.rank - 1) % 4)\n"
        "        comm.barrier()\n"
        "pysmpi.run(program, 4, compute='none', trace='run.jsonl')"
    ),
    "docs/reference/replay.md": "",
    "docs/contributing/design.md": (
        "from pysmpi.mpi.base.ranks import Rank, current\n"
        "from pysmpi.mpi.base.state import StateSlot\n"
        "Type = record = int\n"
    ),
}
AFTER = {
    "docs/explanation/folding.md": "assert block.shape == (8, 4)",
    "docs/explanation/shadow.md": "assert step(field) is None",
    "docs/reference/checkers.md": (
        "import pysmpi; pysmpi.run(lambda: None, 2, compute='none', check='counting')"
    ),
    "docs/reference/explore.md": (
        "from pysmpi.explore.strategy import STRATEGIES; assert 'last' in STRATEGIES.names()"
    ),
    "docs/reference/recording.md": "assert recording.nprocs == 4",
    "docs/contributing/design.md": "assert NAMES.of(current()) == {int: 'row'}",
}


EXECUTE = """\
def execute(page, *texts):
    names = {"__name__": "page"}
    for text in texts:
        exec(compile(text, page, "exec"), names)
"""


def pieces() -> list[Block]:
    return [one for one in BLOCKS if one.page in BEFORE and one.language == "python"
            and "mpi.point_to_point" not in one.text and not by_others(one)]  # fmt: skip


def test_pieces_of_python_run(tmp_path: Path) -> None:
    """In a process of its own: some of them register what they define."""
    (tmp_path / "smpi_simgrid.txt").write_bytes(
        (Path(__file__).parent / "files_of_users" / "smpi_simgrid.txt").read_bytes()
    )
    program = [EXECUTE]
    for one in pieces():
        texts = (BEFORE[one.page], one.text, AFTER.get(one.page, ""))
        if "design" in one.page:  # the state of a rank
            inner = f"lambda: execute({one.page!r}, *{texts!r})"
            program.append(f"import pysmpi; pysmpi.run({inner}, 1, compute='none')")
        else:
            program.append(f"execute({one.page!r}, *{texts!r})")
    path = tmp_path / "all_pieces.py"
    path.write_text("\n".join(program))
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {one.page for one in pieces()} == set(BEFORE)


def test_a_declaration_of_the_page_on_the_design_is_that_of_the_code() -> None:
    decorator, signature = block("declaration").splitlines()
    name = signature.split("(")[0]
    sources = "".join(path.read_text() for path in (ROOT / "pysmpi" / "mpi").rglob("*.py"))
    assert re.search(rf"{re.escape(decorator)}\n +{re.escape(name)}\(", sources)


# ----------------------------------------------------------------------------- tests, with pytest

FAILING = """\
import pytest


@pytest.mark.mpi(ranks=4)
def test_one_rank(comm):
    if comm.rank == 2:
        values = [1, 2, comm.rank]
        assert values == [1, 2, 3]
    comm.Barrier()
"""
LEAVING = """\
import numpy
import pytest


@pytest.mark.mpi(ranks=3)
def test_left(comm):
    data = numpy.zeros(2)
    comm.Barrier()

    if comm.rank == 0:
        # Nobody receives this.
        comm.Send(data, dest=1, tag=5)

    if comm.rank == 0:
        # Nobody else calls this.
        comm.Bcast(data, root=0)
"""


def test_tests_of_the_pages_and_their_reports(tmp_path: Path) -> None:
    head = "import pytest\n"
    (tmp_path / "test_readme.py").write_text(head + block("marked test of README"))
    (tmp_path / "test_page.py").write_text(block("marked test"))
    (tmp_path / "test_one.py").write_text(FAILING)
    (tmp_path / "test_left.py").write_text(LEAVING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "2 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    for text in (block("failure"), block("left operations")):
        for line in text.splitlines():
            if set(line) - set("- rank2") and line:
                assert line in printed, f"{line}\n{done.stdout}"


# ----------------------------------------------------------------- files and outputs of other kinds


def test_tables_of_selectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.sel").write_text(block("table of a selector"))
    Path("tuned.sel").write_text(block("tuned selector"))
    program = (
        "from mpi4py import MPI; MPI.COMM_WORLD.alltoall([1, 2, 3]); MPI.COMM_WORLD.allreduce(1)"
    )
    for name in ("table.sel", "tuned.sel"):
        words = ["run", "-n", "3", "--compute", "none", "--selector", name, "-c", program]
        assert status_of(words) == 0, capfd.readouterr()


def test_a_platform_among_explanations_is_one(tmp_path: Path) -> None:
    path = tmp_path / "edr.yaml"
    path.write_text(block("explained platform"))
    report = check_platform(path)
    assert report.ok, str(report)


def test_the_error_in_a_platform_is_the_one_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sound = block("sound platform")
    Path("lab.yaml").write_text(sound.replace("link: {bandwidth: 1Gbps", 'link: {bandwidth: "1 G"'))
    assert status_of(["run", "--platform", "lab.yaml", "-c", "pass"]) == 2
    assert block("error of a platform").strip() in capfd.readouterr().err


def test_plots_of_a_study_are_a_part_of_one(tmp_path: Path) -> None:
    page = DOCS / "howto" / "sweep-a-study.md"
    study = re.findall(r"^```yaml\n(# study\.yaml\n.*?)^```$", page.read_text(), re.M | re.S)[0]
    program = re.search(r"^program: (\S+)", study, re.MULTILINE)
    assert program is not None
    (tmp_path / program[1]).touch()
    path = tmp_path / "study.yaml"
    path.write_text(study + block("plots"))
    (plot,) = read_study(path).plots
    assert plot.file.endswith("alltoall.svg")


def test_entry_points_name_groups_that_exist() -> None:
    lines = tomllib.loads(block("entry points"))
    groups = lines["project"]["entry-points"]
    sources = "".join(path.read_text() for path in (ROOT / "pysmpi").rglob("*.py"))
    assert groups and all(f'"{group}"' in sources for group in groups)


def test_one_variable_for_two_launchers(tmp_path: Path) -> None:
    """The last assignment holds: a simulation on the machine of the page."""
    text = block("launcher").replace("pysmpi run", "$PYSMPI run")
    (tmp_path / "lab.yaml").write_text(block("first platform"))
    (tmp_path / "app.py").write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.size)\n")
    done = subprocess.run(
        ["sh", "-ec", text], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYSMPI": f"{sys.executable} -m pysmpi", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == ["16"] * 16, done.stderr


def test_lines_of_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.py").write_text(
        "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nif comm.rank == 0:\n"
        "    comm.send('hello', dest=1)\nelse:\n    comm.recv(source=0)\n"
    )
    words = ["run", "-q", "-n", "2", "--compute", "none", "--trace", "run.jsonl", "two.py"]
    assert status_of(words) == 0
    written = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()[1:]]
    for line in block("lines of a recording").splitlines():
        shown = json.loads(line)
        like = [one for one in written if one[:1] == shown[:1] and len(one) == len(shown)]
        assert any([*map(type, one)] == [*map(type, shown)] for one in like), line


OUTPUTS = {
    "run -n 4 --platform graphene apps/jacobi2d.py --size 64 --iterations 5": (
        block("summary"),
        block("parts of the time"),
        block("limit"),
    ),
    "run -n 4 --fold 1MiB --compute none apps/jacobi2d.py --size 2048 --iterations 1": (
        block("folded memory"),
    ),
}


@pytest.mark.parametrize("command", OUTPUTS)
def test_outputs_without_a_command(command: str) -> None:
    """The lines have the form of what a run prints; the figures are those of another run."""
    done = run(Example(0, f"pysmpi {command}", []), ROOT)
    for text in OUTPUTS[command]:
        check(Example(0, "pysmpi run", text.splitlines()), done)


def test_the_workflow_of_the_page_on_packages_gives_what_the_action_takes() -> None:
    action = yaml.safe_load((ROOT / "packaging/action/action.yml").read_text(encoding="utf-8"))
    workflow = yaml.safe_load(block("workflow"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step for step in steps if step["uses"].startswith("pysmpi/pysmpi/packaging/action@")]
    assert used and all(set(step["with"]) <= set(action["inputs"]) for step in used)


# ---------------------------------------------------------------------------------- nothing is left


def by_others(one: Block) -> bool:
    return any(one.is_of(page, text) for page, text, _ in BY_OTHERS)


def test_every_block_is_carried_out() -> None:
    here = {id(one) for one in [*diagnostics(), *pieces()]}
    left = [
        f"{one.page}:{one.line}"
        for one in BLOCKS
        if id(one) not in here and one.page != GALLERY and not by_others(one)
        if not any(one.is_of(*listed) for listed in (*HERE.values(), *BY_NONE))
    ]
    assert left == []
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in HERE if f'block("{name}")' not in source] == []


def test_the_tests_that_carry_out_blocks_exist() -> None:
    for page, text, test in BY_OTHERS:
        assert any(one.is_of(page, text) for one in BLOCKS), (page, text)
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8"), test
    for none in BY_NONE:
        assert any(one.is_of(*none) for one in BLOCKS), none
