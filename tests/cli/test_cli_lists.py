"""The small commands, which list choices and their meanings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pysmpi as package
from pysmpi import diagnostics
from pysmpi.cli.explain import styled
from pysmpi.collectives import registry
from pysmpi.memory.transfer.models import memory_models
from pysmpi.network.models import models
from pysmpi.network.presets import HYBRID
from pysmpi.platform import load, shipped
from pysmpi.platform.loader import systems


def test_version(status):
    code, out, _ = status("--version")
    assert code == 0
    assert out.startswith(f"pysmpi {package.__version__}, Python 3.")
    assert "kernel compiled" in out or "kernel interpreted" in out


def test_version_of_the_interpreted_kernel(pysmpi):
    done = pysmpi("--version", PYSMPI_INTERPRETED="1")
    assert "kernel interpreted" in done.stdout
    assert done.stdout.strip().endswith("engine.py)")


def test_help(status):
    for words in ([], ["run"], ["collectives"], ["platform"], ["explain"], ["models"]):
        code, out, _ = status(*words, "--help")
        assert code == 0
        assert out.startswith("Usage: pysmpi")


def test_models(status, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a line each
    code, out, _ = status("models")
    assert code == 0
    between, inside = out.split("\nInside a node that the platform describes:\n")
    between, presets = between.split("\nPresets of the factors of hybrid (network/preset), ")
    assert [line.split()[0] for line in presets.splitlines()[1:]] == list(HYBRID)
    assert [line.split()[0] for line in between.splitlines()] == sorted(models())
    assert [line.split()[0] for line in inside.splitlines()] == sorted(memory_models())


@pytest.mark.parametrize("command", ["models", "collectives", "platform show cluster"])
@pytest.mark.parametrize("columns", [80, 120])
def test_sentences_fit_into_the_terminal(command, columns, status, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = status(*command.split())
    assert code == 0
    lengths = [len(line) for line in out.splitlines()]
    assert columns - 25 < max(lengths) <= columns


def test_collectives(status):
    code, out, _ = status("collectives")
    assert code == 0
    for op in registry.COLLECTIVES.names():
        assert f"\n{op}: {registry.COLLECTIVES.find(op).line}\n" in f"\n{out}"
    for name in registry.SELECTORS.names():
        assert f"\n  {name} " in out
    code, out, _ = status("collectives", "bcast", "--json")
    assert set(json.loads(out)["bcast"]) == set(registry.algorithms_of("bcast"))


def test_what_every_selector_chooses(status):
    code, out, _ = status("collectives", "bcast", "-n", "64", "--bytes", "64KiB")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "bcast" and any("  binomial_tree" in line for line in lines)
    found = [name for line in lines[1:] for name in line.split(maxsplit=1)[1].split(", ")]
    assert sorted(found) == sorted(set(registry.SELECTORS.names()) - {"automatic"})
    code, out, _ = status("collectives", "--bytes", "8", "--json")
    assert json.loads(out)["bcast"]["default"] == "binomial_tree"


@pytest.mark.parametrize("selector", registry.SELECTORS.names())
def test_choices(status, selector):
    code, out, _ = status("collectives", "--selector", selector, "-n", "12", "--json")
    assert code == 0
    table = json.loads(out)
    for op, choices in table.items():
        sizes = [choice["from_bytes"] for choice in choices]
        assert sizes == sorted(set(sizes))
        for choice in choices:
            assert choice["algorithm"].partition(":")[0] in registry.algorithms_of(op)
    code, out, _ = status("collectives", "bcast", "--selector", selector, "--bytes", "1MiB")
    assert code == 0
    assert len(out.splitlines()) == 1


def test_platforms(status):
    code, out, _ = status("platform", "list")
    assert code == 0
    machines, presets = out.split("\nPresets of networks, ")
    machines, gallery = machines.split("\nSystems of the TOP500 by their public figures; ")
    lines = gallery.splitlines()[1:]
    assert [line.split()[0] for line in lines if line[0] != " "] == systems()
    assert [line.partition(":")[0] for line in machines.splitlines()] == shipped()
    assert all(f"\n{name} " in presets for name in HYBRID if HYBRID[name].measured)
    assert presets.count("checked") == len([one for one in HYBRID.values() if one.measured])
    for name in shipped():
        assert status("platform", "check", name)[0] == 0
    code, out, _ = status("platform", "show", "graphene", "--json")
    assert json.loads(out)["hosts"] == 144


def test_a_simgrid_file_converts(status, tmp_path):
    source = Path(__file__).parents[1] / "data" / "platforms" / "graphene.hybrid.xml"
    target = tmp_path / "graphene.yaml"
    assert status("platform", "convert", str(source), "-o", str(target))[0] == 0
    code, out, _ = status("platform", "convert", str(source))
    assert code == 0
    assert out == target.read_text()
    ours, theirs = load(target), load(source)
    assert [host.name for host in ours.hosts] == [host.name for host in theirs.hosts]
    assert (ours.preset, ours.config) == (theirs.preset, theirs.config)
    code, _, err = status("platform", "convert", "missing.xml")
    assert code == 2
    assert "no such file" in err


def test_explain(status):
    code, out, _ = status("explain")
    assert [line.split()[0] for line in out.splitlines()] == list(diagnostics.DIAGNOSTICS)
    for kind in diagnostics.DIAGNOSTICS.values():
        code, out, _ = status("explain", kind.code.lower())
        assert code == 0
        assert out.startswith(f"# {kind.code} {kind.title}\n")
        for section in ("Why it is bad", "Example", "What to do"):
            assert f"\n## {section}\n" in out


def test_options_of_simgrid(status):
    from pysmpi.platform.config import OPTIONS
    from pysmpi.platform.simgrid_names import FOREIGN

    code, out, _ = status("run", "--cfg", "help")
    assert code == 0
    acting, _, idle = out.partition("\n\n")
    assert [line.split()[0] for line in acting.splitlines()] == [*OPTIONS, "smpi/OPERATION"]
    assert [line.split()[0] for line in idle.splitlines()[2:]] == list(FOREIGN)
    assert status("run", "--help-cfg")[1] == out


def test_models_are_explained(status):
    for name in models():
        code, out, _ = status("models", "--explain", name)
        assert code == 0
        for part in ("formula: ", "parameters:\n", "source: ", "valid: "):
            assert part in out, (name, part)
        assert max(map(len, out.splitlines()[1:])) <= 88
    code, _, err = status("models", "--explain", "logpp")
    assert code == 2
    assert "--explain logpp: no such model; did you mean logp?" in err


def test_a_machine_is_drawn_and_converted_back(status, tmp_path):
    picture = tmp_path / "p.svg"
    assert status("platform", "draw", "cluster", "-o", str(picture))[0] == 0
    assert picture.read_text().startswith("<svg ")
    code, _, err = status("platform", "draw", "cluster", "-o", "p.png")
    assert code == 2 and "expected a file called .svg" in err
    code, out, err = status("platform", "convert", "graphene")
    assert code == 0 and '<platform version="4.1">' in out
    assert "left out, since SimGrid has no form for it: options of the models" in err
    code, _, err = status("platform", "convert", "graphene", "--to", "yaml", "-o", "x.xml")
    assert code == 2 and "which is xml; give one" in err


def test_presets_are_explained(status):
    for name, preset in HYBRID.items():
        code, out, _ = status("models", "--explain", name)
        assert code == 0
        if preset.measured:
            assert "checked against" in out
        else:
            assert "smpi/bw-factor" in out
        assert ("source: " in out) == (name != "neutral")


def test_the_page_of_a_diagnostic_has_bold_headings_on_a_terminal() -> None:
    page = "# PSM101 deadlock\n\nText.\n\n```python\n# no heading\nwait()\n```\n## Remedy\n"
    assert styled(page).splitlines() == [
        "\x1b[1mPSM101 deadlock\x1b[0m", "", "Text.", "", "    # no heading", "    wait()",
        "\x1b[1mRemedy\x1b[0m",
    ]  # fmt: skip
