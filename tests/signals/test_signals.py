"""A small sample of `python -m tests.signals`: a signal in the middle of each command."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace

import pytest

from tests.processes_of import Mark
from tests.signals.moments import COMMANDS, prepare, signalled

MANY = "1000000"  # steps
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finding all processes needs /proc"
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("signals")
    prepare(place, 50)
    # Only the signal ends them, however late it comes on a busy computer.
    for name, steps, more in (
        ("study.yaml", '"100"', f'"{MANY}"'), ("test_ranks.py", '"50"', f'"{MANY}"'),
        ("orders.py", "range(4", "range(50"),
    ):  # fmt: skip
        text = (place / name).read_text()
        assert steps in text
        (place / name).write_text(text.replace(steps, more))
    return place


def _has_child(mark: Mark) -> bool:
    """Whether a rank has started its child, which sleeps for long."""
    return "sleep 300" in mark.processes().values()


def _has_two(mark: Mark) -> bool:
    """Whether an execution of an exploration runs."""
    return len(mark.processes()) >= 2


SAMPLE = [
    ("run", signal.SIGTERM, True, _has_child), ("explore", signal.SIGTERM, False, _has_two),
    ("explore", signal.SIGINT, True, _has_two), ("sweep", signal.SIGHUP, False, _has_child),
    ("replay", signal.SIGINT, True, None), ("pytest", signal.SIGINT, False, _has_child),
    ("pytest", signal.SIGTERM, False, _has_child), ("explore", signal.SIGKILL, False, _has_two),
    ("pytest", signal.SIGKILL, False, _has_child),
]  # fmt: skip


@pytest.mark.parametrize(("name", "number", "to_group", "begun"), SAMPLE)
def test_a_signal_ends_the_command_and_all_of_its_processes(
    name, number, to_group, begun, directory
):
    (command,) = (one for one in COMMANDS if one.name == name)
    command = replace(
        command, arguments=[MANY if one == "150" else one for one in command.arguments]
    )
    outcome = signalled(command, number, 0.1, to_group, directory, begun)
    assert outcome.wrong == "", outcome
    if begun is not None:
        assert outcome.status == command.statuses[number], outcome
    if name == "explore" and number != signal.SIGKILL:
        how = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        assert f"pysmpi: {how}" in outcome.error and " states; " in outcome.error
    if name == "sweep":
        assert "of 4 cases; the same command goes on from there" in outcome.error
