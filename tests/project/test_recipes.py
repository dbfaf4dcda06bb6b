"""The recipes of `packaging/`, the workflows and the documents for contributors are true.

Their versions and requirements are those of pyproject.toml, and the commands and files that they
name exist.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import pysmpi
from pysmpi.cli.main import COMMANDS
from pysmpi.collectives.registry import ENTRY_POINTS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPES = ROOT / "packaging"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STABILITY = ROOT / "docs" / "contributing" / "stability.md"


def requirements(lines: list[str]) -> dict[str, str]:
    """The bounds of each package: {"numpy": ">=1.26,<3"}."""
    found = {}
    for line in lines:
        match = re.fullmatch(r"([\w.-]+)\s*([<>=][\w.<>=,]*)?", line.strip())
        assert match is not None, line
        found[match[1].lower().replace("_", "-")] = match[2] or ""
    return found


NEEDED = requirements(PROJECT["project"]["dependencies"])
BUILT_WITH = requirements(PROJECT["build-system"]["requires"])


def lower(bounds: str) -> tuple[int, ...]:
    match = re.search(r">=([\d.]+)", bounds)
    return tuple(map(int, match[1].split("."))) if match else ()


def test_every_requirement_is_imported() -> None:
    modules = {"pyyaml": "yaml", "mypy-extensions": None}  # compiled modules import the second
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "pysmpi").rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
    }
    assert {modules.get(name, name) for name in NEEDED} - {None} <= imported


def test_every_recipe_has_the_version_of_the_package() -> None:
    version = pysmpi.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version and citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["project"]["license"]
    assert {"title", "authors", "message"} <= set(citation)
    assert conda()["package"]["version"] == version
    assert f"Version {version}\n" in (RECIPES / "apptainer" / "pysmpi.def").read_text()
    assert f'version("{version}"' in (RECIPES / "spack" / "package.py").read_text()
    (easyconfig,) = (RECIPES / "easybuild").glob("*.eb")
    assert easyconfig.name.startswith(f"pysmpi-{version}-")
    assert version in (ROOT / "CHANGELOG.md").read_text()


def conda() -> dict[str, Any]:
    text = (RECIPES / "conda" / "meta.yaml").read_text()
    text = re.sub(r"\{\{ (\w+)\('(\w+)'\) \}\}", r"\1-\2", text)
    found = yaml.safe_load(re.sub(r"\{\{ (\w+) \}\}", r"\1", text))
    assert isinstance(found, dict)
    return found


def test_the_recipe_of_conda_has_the_requirements_of_the_project() -> None:
    run = requirements(conda()["requirements"]["run"])
    assert run.pop("python") == PROJECT["project"]["requires-python"]
    assert run == NEEDED
    host = requirements(conda()["requirements"]["host"])
    assert {name: host[name] for name in BUILT_WITH} == BUILT_WITH


def test_the_recipe_of_spack_has_the_requirements_of_the_project() -> None:
    tree = ast.parse((RECIPES / "spack" / "package.py").read_text())
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "depends_on":
            words = [ast.literal_eval(word) for word in node.args]
            options = {one.arg: ast.literal_eval(one.value) for one in node.keywords}
            name, _, bounds = words[0].partition("@")
            if "when" not in options:
                found[name.removeprefix("py-")] = bounds
    assert set(found) == {"c", "python", *NEEDED, *BUILT_WITH}
    for name, bounds in {**NEEDED, **BUILT_WITH}.items():
        assert tuple(map(int, found[name].split(":")[0].split("."))) == lower(bounds), name


def test_the_recipe_of_easybuild_has_what_the_project_needs() -> None:
    (easyconfig,) = (RECIPES / "easybuild").glob("*.eb")
    given: dict[str, Any] = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz"}
    exec(compile(easyconfig.read_text(), easyconfig, "exec"), given)
    assert easyconfig.name == (
        f"{given['name']}-{given['version']}-{given['toolchain']['name']}-"
        f"{given['toolchain']['version']}.eb"
    )
    listed = {
        entry[0].lower().replace("_", "-"): entry[1]
        for entry in [*given["dependencies"], *given["exts_list"]]
    }
    bundled = {"click", "numpy"}
    assert set(NEEDED) | set(BUILT_WITH) <= set(listed) | bundled
    for name, bounds in {**NEEDED, **BUILT_WITH}.items():
        if name in listed:
            assert tuple(map(int, listed[name].split("."))) >= lower(bounds), name


def test_the_image_is_built_from_files_that_exist() -> None:
    copied, commands = set(), []
    for line in (RECIPES / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY") and "--from" not in line:
            copied.update(shlex.split(line)[1:-1])
        elif line.startswith("RUN"):
            commands.append(line)
    definition = (RECIPES / "apptainer" / "pysmpi.def").read_text()
    also = set(re.findall(r"^    (\S+) /source/\S+$", definition, re.MULTILINE))
    assert copied == also
    assert all((ROOT / name).exists() for name in copied)
    # All that a build reads.
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "MANIFEST.in", "pysmpi"} == copied
    let_in = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    assert let_in == copied
    assert any("pip wheel" in command for command in commands)


def steps() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text())["jobs"]
        for job in jobs.values():
            assert job["runs-on"] and job["steps"]
            found += [(path.name, step) for step in job["steps"]]
    action = yaml.safe_load((RECIPES / "action" / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    found += [("action.yml", step) for step in action["runs"]["steps"]]
    return found


def test_the_commands_of_the_workflows_exist() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    seen = set()
    for place, step in steps():
        assert ("uses" in step) != ("run" in step), (place, step)
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[\w./]+", step["uses"]), step
            continue
        for line in step["run"].splitlines():
            words = shlex.split(line)
            seen.add(words[0])
            if words[:2] == ["python", "-m"]:
                assert words[2] in ("pip", "pytest", "cibuildwheel", "build", "twine", "sphinx")
            elif words[:2] == ["bash", ".ci/run"]:
                assert (ROOT / ".ci" / "run").exists()
            elif words[0] == "pysmpi":
                assert words[1] in COMMANDS
            else:
                assert words[0] == "bash" and "$COMMAND" in line, (place, line)
            for extra in re.findall(r"\.\[([\w-]+)\]", line):
                assert extra in extras, (place, line)
    assert {"python", "bash", "pysmpi"} == seen


def test_the_tests_run_on_every_version_of_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    versions = {
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r"Python :: 3\.\d+$", line)
    }
    assert set(workflow["jobs"]["all"]["strategy"]["matrix"]["python"]) == versions
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert {f"cp{version.replace('.', '')}-*" for version in versions} == set(built)
    for command in PROJECT["tool"]["cibuildwheel"]["test-command"].split(" && "):
        assert shlex.split(command)[1] in {"--version", *COMMANDS}


def test_the_page_on_stability_lists_what_is_public() -> None:
    rows = {
        line.split(" | ")[0].removeprefix("| "): set(re.findall(r"`([^`]+)`", line.split(" | ")[1]))
        for line in STABILITY.read_text().splitlines()
        if line.startswith("| ")
    }
    assert rows["[`import pysmpi`](../reference/api.md)"] == set(pysmpi.__all__)
    assert rows["[the command line](../reference/cli.md)"] == set(COMMANDS)
    registry = re.compile(r"Registry\(\s*\"[^\"]+\",\s*(?:\"([\w.]+)\"|ENTRY_POINTS)")
    groups = {
        group or ENTRY_POINTS
        for path in (ROOT / "pysmpi").rglob("*.py")
        for group in registry.findall(path.read_text())
    }
    assert rows["plug-ins"] == groups
    schema = json.loads((ROOT / "pysmpi/reports/report.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    assert f"`schema` is {schema['properties']['schema']['const']};" in STABILITY.read_text()


def test_the_commands_for_contributors_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:tests|packaging|pysmpi|docs|\.github)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target
    modules = set(re.findall(r"python -m (\w+)", text)) - {"venv", "build"}
    assert "benchmarks" in modules
    assert all(importlib.util.find_spec(name) for name in modules)
    for variable in re.findall(r"PYSMPI_\w+", text):
        code = [(ROOT / "setup.py"), *(ROOT / "pysmpi").glob("*.py")]
        assert any(variable in path.read_text() for path in code), variable


def tool(module: str, *words: str | Path) -> str:
    """Run a program of the extra `recipes`, and return its output."""
    pytest.importorskip(module, reason="needs the extra recipes")
    done = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_workflows_follow_the_schema_of_github() -> None:
    tool("check_jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    action = RECIPES / "action" / "action.yml"
    tool("check_jsonschema", "--builtin-schema", "vendor.github-actions", action)


def test_the_metadata_of_the_project_follow_their_schema() -> None:
    tool("validate_pyproject", "pyproject.toml")


@pytest.mark.parametrize(
    ("system", "tags"),
    [
        ("linux", ["manylinux_x86_64", "manylinux_aarch64"]),
        ("macos", ["macosx_x86_64", "macosx_arm64"]),
    ],
)
def test_wheels_are_built_for_every_python_and_processor(system: str, tags: list[str]) -> None:
    archs = ",".join(PROJECT["tool"]["cibuildwheel"][system]["archs"])
    words = ["--print-build-identifiers", "--platform", system, "--archs", archs, "."]
    output = tool("cibuildwheel", *words)
    pythons = [one.removesuffix("-*") for one in PROJECT["tool"]["cibuildwheel"]["build"].split()]
    assert sorted(output.split()) == sorted(f"{one}-{tag}" for one in pythons for tag in tags)


def test_the_linter_of_images_has_nothing_to_say() -> None:
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent)
    if hadolint is None:
        pytest.skip("needs the extra recipes, which has hadolint for Linux on x86_64")
    done = subprocess.run([hadolint, RECIPES / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_the_definition_of_apptainer_says_what_the_image_does() -> None:
    """The parser of Singularity's definitions writes it as a Dockerfile."""
    pytest.importorskip("spython", reason="needs the extra recipes")
    from spython.main.parse.parsers import SingularityParser

    recipe = SingularityParser(str(RECIPES / "apptainer" / "pysmpi.def")).parse()["spython-base"]
    base = (RECIPES / "Dockerfile").read_text().partition("FROM ")[2].split()[0]
    assert recipe.fromHeader == base
    copied = {line.split()[0] for line in recipe.files}
    assert {"setup.py", "pyproject.toml", "pysmpi"} <= copied
    assert any("pip install" in line for line in recipe.install)
    assert recipe.test
    for command in ("pysmpi doctor", "pysmpi demo deadlock"):
        assert any(command in line for line in recipe.install)


def test_the_parser_of_easybuild_takes_its_recipe() -> None:
    pytest.importorskip("easybuild.framework", reason="needs the extra recipes")
    from easybuild.framework.easyconfig.default import DEFAULT_CONFIG
    from easybuild.framework.easyconfig.parser import EasyConfigParser

    (easyconfig,) = (RECIPES / "easybuild").glob("*.eb")
    parsed = EasyConfigParser(str(easyconfig)).get_config_dict()
    assert set(parsed) <= set(DEFAULT_CONFIG)
    mandatory = {name for name, value in DEFAULT_CONFIG.items() if value[2] == 0}
    missing = {name for name in mandatory - set(parsed)}
    assert not missing, missing


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md", "packaging/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target
