"""Machines that Python describes: dictionaries with the keys of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import pysmpi
from pysmpi.platform.default import MACHINES
from pysmpi.platform.loader import load, shipped

LAB = {
    "name": "lab",
    "clusters": [
        {
            "name": "lab",
            "hosts": "node-[0-15]",
            "cores": 2,
            "network": {"bandwidth": "10Gbps", "latency": "5us"},
        }
    ],
}


def where():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.Get_processor_name()


def test_a_dictionary_is_the_machine_of_a_file_with_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(yaml.safe_dump(LAB))
    described, read = (
        pysmpi.run(where, 3, platform=machine, map_by="node", compute="none")
        for machine in (LAB, file)
    )
    assert described.returns == read.returns == ["node-0", "node-1", "node-2"]
    assert described.seconds == read.seconds > 0
    assert described.platform == "lab" and described.report()["options"]["platform"] == LAB


@pytest.mark.parametrize("name", shipped())
def test_the_data_of_each_machine_describe_it(name: str) -> None:
    data = yaml.safe_load((MACHINES / f"{name}.yaml").read_text())
    described, read = load(data), load(name)
    assert [(h.name, h.cores, h.speed) for h in described.hosts] == [
        (h.name, h.cores, h.speed) for h in read.hosts
    ]
    assert [(one.name, one.bandwidth, one.latency) for one in described.links] == [
        (one.name, one.bandwidth, one.latency) for one in read.links
    ]


def endless() -> dict[str, object]:
    data: dict[str, object] = {"name": "x"}
    data["zones"] = [data]
    return data


@pytest.mark.parametrize(
    "data, message",
    [
        ({}, 'platform: expected the key "name", got none'),
        ({"nam": "lab"}, 'got "nam"; did you mean "name"?'),
        (
            {"name": "x", "hosts": [{"name": "a", "speed": 10}]},
            "platform: hosts[0].speed: expected a speed",
        ),
        ({"name": object()}, "platform: expected dictionaries, lists, texts and numbers, got"),
        (endless(), "expected a finite document"),
        (3, "a dictionary with its keys, or a Platform, got 3"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(data: object, message: str) -> None:
    with pytest.raises(pysmpi.UsageError) as error:
        pysmpi.run(where, 2, platform=data)  # type: ignore[arg-type]
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.mpi(ranks=2, platform=LAB, map_by="node")
def test_a_mark_takes_one(comm) -> None:
    from mpi4py import MPI

    assert MPI.Get_processor_name() == f"node-{comm.rank}"
