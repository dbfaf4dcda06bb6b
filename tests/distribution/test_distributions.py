"""The wheel and the source distribution: what they hold, and that they install and run."""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from distributing import Installation, files_of_checkout, tool

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Parts of a clone that only its own tools use.
NOT_DISTRIBUTED = re.compile(r"\.(git(ignore|hub/)|binder/|devcontainer/)")

linux = pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads wheels of Linux")


def doctor(installation: Installation) -> dict[str, dict[str, str]]:
    done = installation("pysmpi", "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return {one["subject"]: one for one in json.loads(done.stdout)}


def test_a_wheel_has_what_a_run_needs_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {name for name in names if name.endswith(".py")}
    files = {name for name in files_of_checkout() if name.startswith("pysmpi/")}
    applications = {name for name in files_of_checkout() if name.startswith("apps/")}
    apps = {f"pysmpi/{name}" for name in applications if name.endswith(".py")}
    assert "pysmpi/apps/npb_ep.py" in apps  # for `pysmpi study`
    assert modules == {name for name in files if name.endswith(".py")} | apps
    data = {name for name in files if not name.endswith((".py", ".c", ".h"))}
    assert {"pysmpi/cli/demos/two-switches.yaml", "pysmpi/platform/machines/graphene.yaml"} < data
    assert data <= names
    rest = {name for name in names - modules - data if not name.endswith(".so")}
    assert all(name.partition("/")[0].endswith(".dist-info") for name in rest), rest
    libraries = {name.partition(".")[0] for name in names if name.endswith(".so")}
    assert {name.partition("/")[0] for name in libraries} == {"pysmpi", "pysmpi__mypyc"}
    assert {"pysmpi/kernel/engine", "pysmpi/isolation/frame_stacks"} < libraries


def test_a_wheel_is_compiled_and_runs(compiled: Installation) -> None:
    found = doctor(compiled)
    assert found["kernel"]["text"] == found["parts in C"]["text"] == "compiled"
    assert str(compiled.directory) in found["pysmpi"]["text"]
    assert found["a run of four ranks"]["text"] == "right"
    demo = compiled("pysmpi", "demo", "contention")
    assert demo.returncode == 0 and "8 pairs at once:    156 MB/s" in demo.stdout


def test_the_metadata_are_complete(wheel: Path, source_distribution: Path) -> None:
    output = tool("twine", "check", "--strict", wheel, source_distribution, cwd=ROOT)
    assert output.count("PASSED") == 2
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = message_from_bytes(archive.read(name))
    assert metadata["License-Expression"] == "MIT" and metadata["License-File"] == "LICENSE"
    assert metadata["Author"] and metadata["Keywords"] and metadata["Requires-Python"]
    addresses = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert set(addresses) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    # PyPI shows the README, where a relative address leads nowhere.
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


@linux
def test_a_wheel_is_one_of_manylinux(wheel: Path, tmp_path: Path) -> None:
    shown = tool("auditwheel", "show", wheel, cwd=tmp_path)
    assert re.search(r'platform tag:\s+"manylinux_2_\d+_', shown), shown
    tool("auditwheel", "repair", "-w", tmp_path, wheel, cwd=tmp_path)
    (repaired,) = tmp_path.glob("*.whl")
    assert re.search(r"-manylinux_2_\d+_\w+\.whl$", repaired.name)


def test_a_source_distribution_is_a_clone(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("apps/npb_cg.py", "docs", "tests/conftest.py", "platforms", "setup.py"):
        assert name in names
    sources = [name for name in files_of_checkout() if name.endswith((".c", ".h"))]
    assert len(sources) > 8 and set(sources) < names
    missing = [
        name
        for name in files_of_checkout()
        if name not in names and not NOT_DISTRIBUTED.match(name)
    ]
    assert not missing
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_without_a_compiler_it_runs_interpreted(interpreted: Installation) -> None:
    found = doctor(interpreted)
    assert found["kernel"]["text"].startswith("interpreted")
    assert "Install a C compiler" in found["kernel"]["remedy"]
    assert "pysmpi.isolation.frame_stacks" in found["parts in C"]["text"]
    assert "--fold is not available" in found["parts in C"]["remedy"]
    assert found["a run of four ranks"]["text"] == "right"
    demo = interpreted("pysmpi", "demo", "deadlock")
    assert demo.returncode == 0 and "PSM101 deadlock" in demo.stdout
