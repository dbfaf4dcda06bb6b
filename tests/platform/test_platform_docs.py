"""The examples of the pages on platforms are platforms, and their Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi
from pysmpi.platform.check import check
from pysmpi.platform.zones import load_kinds

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = ("platform", "platform-keys", "rails", "nodes", "placement", "simgrid-files")
TEXT = "\n".join((REFERENCE / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_examples_are_sound_platforms(text, tmp_path):
    path = tmp_path / "example.yaml"
    path.write_text(text, encoding="utf-8")
    report = check(path)
    assert report.ok, str(report)


def exchange():
    from mpi4py import MPI

    MPI.COMM_WORLD.sendrecv("text", 1 - MPI.COMM_WORLD.rank)


@pytest.mark.parametrize(
    ("text", "printed"), list(zip(blocks("python"), ["bb1_UP", "8\n", "2\n"], strict=True))
)
def test_python_examples_run(text, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if "run.jsonl" in text:
        pysmpi.run(exchange, 2, compute="none", trace="run.jsonl")
        capsys.readouterr()
    exec(compile(text, "docs/reference/platform.md", "exec"), {})
    assert printed in capsys.readouterr().out


def test_every_kind_of_zone_is_described():
    for name in load_kinds():
        assert f"`{name}`" in TEXT or f"kind: {name}" in TEXT
