"""The machines that ship, finding platforms by name or file, and the output of check and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.platform import DEFAULT, load, shipped
from pysmpi.platform.check import check, describe, show
from pysmpi.platform.default import default_machine
from pysmpi.platform.loader import read
from pysmpi.platform.placement import place

ROOT = Path(__file__).parent.parent.parent
PLATFORMS = ROOT / "tests" / "data" / "platforms"


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_machine_is_sound_and_says_where_it_comes_from(name):
    machine = load(name)
    assert machine.name == name
    assert machine.description
    assert machine.sources
    assert check(name).ok
    assert len(place(machine, 1000)) == 1000


@pytest.mark.parametrize("name", shipped())
def test_the_top_level_folder_links_every_shipped_machine(name):
    assert (ROOT / "platforms" / f"{name}.yaml").read_text() == (
        ROOT / "pysmpi" / "platform" / "machines" / f"{name}.yaml"
    ).read_text()
    assert f"`{name}`" in (ROOT / "platforms" / "README.md").read_text()


def test_the_default_machine_is_that_of_its_file():
    """All but the descriptions, and the places in the file."""
    read_one, built = read(DEFAULT), default_machine()
    assert str(built.root.members[0].where) in read_one.root.members[0].where
    built.root.members[0].where = read_one.root.members[0].where
    built.description, built.sources = read_one.description, read_one.sources
    assert built == read_one


def test_the_default_machine_ships():
    assert DEFAULT in shipped()


def test_graphene_is_the_machine_of_the_reference_runs():
    ours, theirs = load("graphene"), load(PLATFORMS / "graphene.hybrid.xml")
    assert ours.config == theirs.config
    assert [(h.name, h.speed, h.cores) for h in ours.hosts] == [
        (h.name, h.speed, h.cores) for h in theirs.hosts
    ]
    assert [host.name for host in ours.hosts] == [f"graphene-{i}" for i in range(144)]

    def facts(platform, i, j):
        route = platform.route(platform.hosts[i], platform.hosts[j])
        return [(li.name, li.bandwidth, li.latency, li.sharing) for li in route.links]

    for i in range(0, 144, 13):
        for j in range(144):
            assert facts(ours, i, j) == facts(theirs, i, j)


def test_names_and_files_that_are_not_there():
    with pytest.raises(UsageError, match='got "grafene"; did you mean "graphene"'):
        load("grafene")
    with pytest.raises(UsageError, match="one of cluster, .*graphene, .*laptop"):
        load("summit")
    with pytest.raises(UsageError, match=r"missing\.yaml: expected a platform file, got no such"):
        load("missing.yaml")
    with pytest.raises(UsageError, match="got a directory"):
        load(str(PLATFORMS) + "/")
    with pytest.raises(UsageError, match=r"expected a file called \.yaml"):
        load(str(ROOT / "platforms" / "README.md"))


def test_check_summarises_in_one_line():
    report = check(PLATFORMS / "graphene.default.xml")
    assert report.ok
    assert str(report).endswith(
        "graphene.default: 144 hosts, 144 cores of 3.542 Gflop/s, 588 links, zones 4 flat, 1 full"
    )


def test_check_reports_instead_of_raising(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("name: p\nhosts: [{name: a, speed: 1}]\n", encoding="utf-8")
    report = check(path)
    assert not report.ok
    assert "hosts[0].speed" in str(report)


def test_check_finds_hosts_that_cannot_reach_each_other(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nhosts: [{name: a, speed: 1Gf}, {name: b, speed: 1Gf}]\n", encoding="utf-8"
    )
    report = check(path)
    assert not report.ok
    assert "got none from a to b and 1 more" in str(report)


def test_show_has_a_twin_for_machines():
    machine = load("graphene")
    facts = json.loads(json.dumps(describe(machine)))
    assert facts["hosts"] == 144
    assert facts["routes"]["last"]["links"][2:4] == ["lim1", "bb1_UP"]
    text = show(machine)
    assert "graphene-0 -> graphene-143" in text
    assert "option smpi/async-small-thresh: 65536" in text
