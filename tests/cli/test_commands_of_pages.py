"""The commands of README.md and docs/ run as they are written, and print what the pages show.

Each page has a directory, in which its commands run one after the other. It holds the files of
`files_of_users/`, the programs of the repository, and the programs that the page itself shows.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.differential.real_mpich import mpich

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "files_of_users"
DOCS = ROOT / "docs"

# The pages whose reader begins in an empty directory: `test_commands_of_the_path.py`.
RECIPES = """
    from-mpiexec from-smpirun compiled-programs describe-my-cluster compare-collectives
    find-a-race test-in-ci sample-and-fold profile-compute replay-a-real-run debug-with-an-editor
    add-your-own sweep-a-study predict-energy
""".split()
PATH = [
    *sorted((DOCS / "start").glob("*.md")),
    *(DOCS / "howto" / f"{name}.md" for name in RECIPES),
    DOCS / "glossary.md",
    DOCS / "troubleshooting.md",
]
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.glob("**/*.md") if page not in PATH),
]

# Words that run otherwise: smaller, so that a page takes seconds, and on a busy computer.
OTHERWISE = {
    "--check-shadow": "--check-shadow --check-tolerance 1000",
    "--class C": "--class S",
    "--size 4096 --iterations 200": "--size 512",
    "mpiexec -n 64": "mpiexec -n 2",
    "-n 100000": "-n 500",
    "-n 1000": "-n 20",
    "-n 128": "-n 16",
    "-n 64": "-n 16",
    "--ops bcast,allreduce": "--ops bcast,allreduce --sizes 1KiB",
    "--selector automatic": "--coll bcast=automatic",
    "--runs 500": "--runs 20",
}

# Commands that do not run here, and the reason.
ELSEWHERE = {
    "-m pytest": "a suite of tests",
    "pytest tests/": "a suite of tests",
    "pytest -m fast": "a suite of tests",
    "pytest -q tests/": "a suite of tests",
    "pytest -n 2": "a suite of tests",
    "graphene train.py": "needs PyTorch: tests/patches/test_process_groups.py",
    "download.pytorch.org": "installs PyTorch",
    "-m tests.mutate": "takes minutes: tests/mutate",
    "-m tests.pytest_plugin": "fetches packages: tests/pytest_plugin",
    "-m tests.packages": "fetches packages: tests/packages",
    "-m tests.mpich_suite": "fetches a suite: tests/abi",
    "-m tests.smpi_suite": "fetches a suite: tests/abi",
    "-m tests.suites": "reads suites: tests/suites",
    "-m tests.intervals": "takes minutes of a quiet computer",
    "-m tests.shadow.steered": "takes minutes: tests/shadow/test_steering.py",
    "-m tests.mbi": "fetches a suite: tests/abi",
    "-m tests.random_c": "takes minutes: tests/random_c",
    "docs/screenshots.py": "writes pictures, with a browser",
    "calibrate memory": "takes minutes: tests/calibrate",
    "calibrate network": "takes minutes on two computers: tests/calibrate",
    "validate.jsonl": "a recording of a cluster: tests/validate",
    "validate osu_latency.txt": "figures of a cluster: tests/validate",
    "--platform here.yaml": "the file of calibrate memory",
    "dask ": "ends only by a signal: tests/sweeps",
    "--scheduler tcp://node1:8786": "another computer: tests/sweeps",
    "python benchmarks/": "takes minutes: tests/benchmarks",
    "python -m benchmarks": "takes minutes: tests/benchmarks",
    "pysmpi study": "tests/studies",
    "tests/isolation/owned.py": "writes the page itself",
    "main.py": "a program of the tables: tests/mpi4py_suite",
}

STARTS = r"(?:pysmpi|python3?|mpiexec|pytest|pip|dask|smpirun|echo)"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"\(pysmpi, rank \d+\) (.*)")
FIGURE = r"\d[\d,.]*(?: [num]?s\b| [kMG]?B\b)?"
INLINE = re.compile(rf"`({STARTS} [^`]*)`")
CAPITALS = re.compile(r"\b[A-Z]{4,}\b|\.\.\.|\bN\b")

# The exit statuses of commands whose reports are not shown.  NAS CG is sampled and checks itself.
STATUSES = {
    "--fault rank=7@2.5s": 3,
    "explore -n 4 --schedule": 1,
    "--sample __main__:Solver.solve": 1,
}


@dataclass
class Example:
    """A command of a page, and the lines that the page shows of its output."""

    line: int
    words: str
    shown: list[str]

    @property
    def elsewhere(self) -> str:
        return next((why for part, why in ELSEWHERE.items() if part in self.words), "")


def commands_of(block: str, first: int) -> list[Example]:
    """The commands of a block without a language."""
    found: list[Example] = []
    prompts = re.search(r"^\$ ", block, re.MULTILINE)
    open_end = False
    for line, text in enumerate(block.splitlines(), first):
        if open_end:
            found[-1].words += " " + text.strip()
        elif text.startswith("$ ") if prompts else re.match(STARTS + r" .*[^:]$", text):
            found.append(Example(line, text.removeprefix("$ "), []))
        elif found:
            found[-1].shown.append(text)
        open_end = bool(found) and text.endswith("\\") and not found[-1].shown
        if open_end:
            found[-1].words = found[-1].words.removesuffix("\\").strip()
    for one in found:
        one.words = re.sub(r" +# .*", "", one.words)
    return found


def is_whole(words: str) -> bool:
    """Whether a command in a sentence is whole: it names a file, and nothing in capitals."""
    suffixes = "py" if " run " in words else "py|jsonl|svg|yaml|ti|xml|md"
    return bool(re.search(rf"\.({suffixes})\b", words) and not CAPITALS.search(words))


def examples(page: Path) -> list[Example]:
    """The commands of a page, in their order.

    A block without commands that follows a command, with no heading between, is its output.
    """
    text = page.read_text(encoding="utf-8")
    found: list[Example] = []
    end = 0
    for match in [*FENCE.finditer(text), None]:
        prose = text[end : match.start() if match else len(text)]
        for inline in INLINE.finditer(prose):
            words = " ".join(inline[1].split())
            if is_whole(words):
                found.append(Example(text.count("\n", 0, end + inline.start()) + 1, words, []))
        if match is None:
            break
        end = match.end()
        if match[1] not in ("", "sh") or re.search(r"[\[|]", match[2].partition("\n")[0]):
            continue
        line = text.count("\n", 0, match.start()) + 2
        commands = commands_of(match[2], line)
        if found and not found[-1].shown and re.match(r"pysmpi: |PSM\d| ?[A-Z]", match[2]):
            if "\n#" not in text[: match.start()].split(found[-1].words.split()[-1])[-1]:
                found[-1].shown = match[2].splitlines()
        found += commands
    return found


def files_of(page: Path, directory: Path) -> None:
    """Write the files that the commands of a page need."""
    shutil.copytree(FILES, directory, dirs_exist_ok=True)
    for name in ("apps", "benchmarks"):
        (directory / name).symlink_to(ROOT / name)
    text = page.read_text(encoding="utf-8")
    for name, code in re.findall(r"^```py(?:thon)?\n# (\w+\.py)\n(.*?)^```$", text, re.M | re.S):
        (directory / name).write_text(f"# {name}\n{code}")
    for name, code in re.findall(r"`(\w+\.py)`[^`]*\n\n```py\n(.*?)^```$", text, re.M | re.S):
        (directory / name).write_text(code)


def run(
    example: Example, directory: Path, otherwise: dict[str, str] = OTHERWISE
) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory, with this Python and this pysmpi."""
    words = example.words.rpartition("&& .venv/bin/")[2]
    for shown, runs in otherwise.items():
        words = re.sub(rf"(?<!\S){re.escape(shown)}(?!\S)", runs, words)
    python = shlex.quote(sys.executable)
    words = re.sub(r"^pysmpi ", f"{python} -m pysmpi ", words)
    words = re.sub(r"^(mpiexec -n \d+ )?python3? ", rf"\1{python} ", words)
    typed = [line[1] for line in map(PROMPT.match, example.shown) if line]
    return subprocess.run(
        words, shell=True, cwd=directory, capture_output=True, text=True, timeout=600,
        input="".join(f"{line}\n" for line in typed),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def pattern_of(line: str, exact: bool) -> str:
    """The form of a line of output; figures of measured runs vary, and what limits them.

    A line that ends with `...` is the beginning of one.
    """
    if line.endswith(", ..."):
        return pattern_of(line.removesuffix("..."), exact) + ".*"
    if varies := re.match(r"pysmpi: (limit:|critical path:|simulated in|wall time) ", line):
        return varies[0] + ".*"
    exact = exact and not line.startswith("pysmpi: folded ")  # the memory of the process
    return re.escape(line) if exact else FIGURE.join(map(re.escape, re.split(FIGURE, line)))


def status_of(example: Example) -> int:
    """The exit status that a command must have."""
    for part, status in STATUSES.items():
        if part in example.words:
            return status
    if " demo " in example.words:
        return 0
    if example.words.startswith("pytest"):
        return int(any(re.search(r"\d failed", line) for line in example.shown))
    if any(line.startswith("pysmpi: error:") for line in example.shown):
        return 2
    reports = (re.match(r"(PSM\d+) |\w+Error", line) for line in example.shown)
    report = next(filter(None, reports), None)
    if report is None:
        return 0
    return 1 if report[1] in (None, "PSM102") else 3


def check(example: Example, done: subprocess.CompletedProcess[str]) -> None:
    """Compare a command with its page: whole outputs, or the lines around `...`."""
    about = f"line {example.line}: {example.words}\n{done.stdout}{done.stderr}"
    assert done.returncode == status_of(example), about
    measured = re.search(r"\b(run|demo|doctor)\b|^pytest|replayed\.jsonl", example.words)
    exact = not measured or "--compute none" in example.words
    shown = [line for line in example.shown if line.strip() and not PROMPT.match(line)]
    between = {"...", " ..."}
    printed = re.sub(r"\(pysmpi, rank \d+\) ", "", done.stdout + done.stderr)
    lines = [line for line in re.sub(r"(?m)^> /.*/", "> ", printed).splitlines() if line.strip()]
    if exact and shown and not between & set(shown) and len(shown) == len(example.shown):
        assert lines == shown, about
    for line in shown:
        if line not in between:
            form = re.compile(pattern_of(line, exact))
            assert any(map(form.fullmatch, lines)), f"no line {line!r}\n{about}"


WITH_COMMANDS = {
    page.relative_to(ROOT).as_posix(): found
    for page in PAGES
    if (found := [one for one in examples(page) if not one.elsewhere])
}


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands(name: str, tmp_path: Path) -> None:
    files_of(ROOT / name, tmp_path)
    for example in WITH_COMMANDS[name]:
        tool = example.words.split()[0]
        if tool == "mpiexec" and not mpich() or tool == "smpirun" and not shutil.which(tool):
            continue
        check(example, run(example, tmp_path))


def test_commands_that_are_left_out_exist() -> None:
    every = "\n".join(one.words for page in PAGES for one in examples(page))
    assert [part for part in ELSEWHERE if part not in every] == []
    assert [part for part in OTHERWISE if part not in every] == []


def test_commands_are_found() -> None:
    assert sum(map(len, WITH_COMMANDS.values())) > 70
