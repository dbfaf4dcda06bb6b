"""The rules of the project: import contracts, style, and a README that is true."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command, **variables):
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, **variables},
    )  # fmt: skip


def test_rooms_import_only_downwards():
    lint = "from importlinter.cli import lint_imports_command as main; main()"
    done = run(sys.executable, "-c", lint)
    assert done.returncode == 0, done.stdout + done.stderr


def test_style():
    for command in (["check", "."], ["format", "--check", "."]):
        done = run(sys.executable, "-m", "ruff", *command)
        assert done.returncode == 0, done.stdout + done.stderr


def commands():
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^python3 -m venv .*$", text, re.MULTILINE)


def test_readme_has_its_two_commands():
    main, tests = commands()
    assert main.endswith("pysmpi run -n 16 --platform graphene apps/npb_cg.py --class S")
    assert tests.endswith("python -m pytest -n 2 --dist loadfile")


def test_readme_example_runs():
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    done = run(sys.executable, "-c", example)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[28, 28, 28, 28, 28, 28, 28, 28] 0.0005")


def test_links_of_the_documents_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_one_module_reads_frames():
    names = r"_getframe|currentframe|f_locals|f_back|gr_frame|get_objects|_current_frames"
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("pysmpi/**/*.py")
        if re.search(rf"\b({names})\b", path.read_text())
    }
    assert found == {"pysmpi/python/frames.py"}


def test_versions_of_what_pysmpi_looks_into_have_upper_bounds():
    """pysmpi uses parts of these that their next versions may change."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = {re.match(r"[\w-]+", line)[0]: line for line in project["dependencies"] if "<" in line}
    assert "<" in project["requires-python"]
    assert {"greenlet", "mpi4py", "numpy"} <= bounds.keys()
