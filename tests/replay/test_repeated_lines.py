"""Lines that repeat are read once; their replay is that of lines that differ."""

import random
import re
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.replay.sources import OwnFile

LOOP = [
    "compute 20000", "irecv 1 0 14000 6", "send 1 0 14000 6", "wait 1 0 0", "barrier", "",
    "irecv 1 0 8 6", "send 1 0 8 6", "wait 1 0 0", "compute 20000", "allreduce 100 5e3",
]  # fmt: skip


def lines_of(path: Path):
    """The numbered lines of a file as a replay gets them, and its greatest number of repetitions.

    They are numbers and lines.
    """
    found, most = [], 0
    for number, lines, times in OwnFile(0, path, "a").blocks():
        found += enumerate(lines * times, number)
        most = max(most, times)
    return found, most


@pytest.mark.parametrize("last", ["\n", "", "\n\n"], ids=["newline", "none", "two"])
@pytest.mark.parametrize("length", [1, 3, 40])
@pytest.mark.parametrize("faults", [0, 1, 30])
def test_all_lines_are_read_once_and_in_order(length, faults, last, tmp_path):
    chance = random.Random(f"{length} {faults} {last}")
    loop = [f"0 send {chance.randrange(40)} 0 {chance.randrange(4)}" for _ in range(length)]
    lines = ["0 init", *loop * (12_000 // length), "0 finalize"]
    for _ in range(faults):
        lines[chance.randrange(len(lines))] = chance.choice(("", "0 barrier", "0 send 4 0 12"))
    text = "\n".join(lines) + last
    (tmp_path / "a").write_text(text)
    found, most = lines_of(tmp_path / "a")
    expected = text.removesuffix("\n").split("\n")
    assert found == [(number, line.encode()) for number, line in enumerate(expected, 1)]
    assert most > (1000 / length if faults < 2 else 0)


def written(loop, times, folder: Path, differ: bool):
    """A trace of two ranks, each of which repeats a loop; its lines may differ by comments."""
    for rank in (0, 1):
        with open(folder / f"{rank}.ti", "w") as stream:
            number = 0
            for line in [*loop * times, "finalize"]:
                if rank == 1:
                    line = re.sub(r"(send|recv) 1", r"\1 0", line).replace("t 1 0", "t 0 1")
                number += 1
                stream.write(f"{rank} {line}{f' # {number}' if differ else ''}\n" if line else "\n")
    (folder / "index").write_text("0.ti\n1.ti\n")
    return folder / "index"


def replayed(loop, times, folder, differ):
    """The times of two ranks, and their messages and bytes."""
    index = written(loop, times, folder, differ)
    result = Replay([(index, 0.0)], platform="graphene").run()
    return result.end_seconds, result.messages, result.bytes


# A second `init x` changes the datatype of the lines after it.
@pytest.mark.parametrize("change", [None, "init x"])
def test_the_times_are_those_of_lines_that_differ(change, tmp_path):
    loop = [*LOOP, "send 1 3 70", "recv 1 3 70"] + [change] * (change is not None)
    assert replayed(loop, 600, tmp_path, False) == replayed(loop, 600, tmp_path, True)


def test_an_error_in_a_repetition_has_its_line(tmp_path):
    index = written(LOOP, 600, tmp_path, False)
    lines = (tmp_path / "1.ti").read_text().splitlines(keepends=True)
    # Rank 1 leaves a message out in the repetition 500.
    at = 500 * len(LOOP) + 7
    assert lines.pop(at) == "1 send 0 0 8 6\n"
    (tmp_path / "1.ti").write_text("".join(lines))
    with pytest.raises(UsageError) as error:
        Replay([(index, 0.0)], platform="graphene").run()
    # The next message of rank 1 takes its place, up to the barrier.
    assert "rank 0 at" in str(error.value)
    number = int(re.search(r"0\.ti, line (\d+)", str(error.value))[1])
    own = (tmp_path / "0.ti").read_text().splitlines()
    assert own[number - 1] == "0 wait 1 0 0" and at < number <= at + len(LOOP)
