"""The binary form of GOAL: what `txt2bin` of LogGOPSim writes is read as the text that it read.

`broadcast.goal.bin` is the output of `txt2bin` for a broadcast of 4 KiB to 16 ranks by `schedgen`.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.replay import Replay
from pysmpi.replay.goal import is_goal, read_goal
from pysmpi.replay.goal_schedule import CALC, RECV, SEND, GoalSchedule

FILE = Path(__file__).with_name("broadcast.goal.bin")


def broadcast(ranks: int) -> str:
    """The text that the file was made from: a binomial tree."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines += [f"rank {rank} {{"]
        if rank:
            lines.append(f"l1: recv 4096b from {rank - (1 << rank.bit_length() - 1)} tag 0")
        targets = [rank + (1 << k) for k in range(rank.bit_length(), ranks.bit_length() - 1)]
        for number, target in enumerate(targets, 2):
            lines.append(f"l{number}: send 4096b to {target} tag 0")
            if rank:
                lines.append(f"l{number} requires l1")
        lines.append("}")
    return "\n".join(lines)


def number_of(value: int) -> int:
    return 0xFFFFFFFF if value == ANY else value


def written(schedules: list[GoalSchedule]) -> bytes:
    """The binary form of some schedules, written as the format's description says."""
    kinds = {SEND: 1, RECV: 2, CALC: 3}
    parts = []
    for one in schedules:
        roots = [number for number, missing in enumerate(one.missing) if not missing]
        records, released = b"", []
        for i, kind in enumerate(one.kinds):
            ends, starts = one.after_end.get(i, []), one.after_start.get(i, [])
            records += struct.pack(
                "<IBIQIBBIIII", one.missing[i], kinds[kind], number_of(one.peers[i]),
                one.amounts[i], number_of(one.tags[i]), one.cpus[i], 0,
                len(ends), len(released), len(starts), len(released) + len(ends),
            )  # fmt: skip
            released += [*ends, *starts]
        numbers = [len(one), len(roots), *roots]
        parts.append(
            struct.pack(f"<{len(numbers)}I", *numbers)
            + records
            + struct.pack(f"<{len(released)}I", *released)
        )
    offset = 6 + 16 * len(parts)
    table = b""
    for part in parts:
        table += struct.pack("<QQ", offset, offset + len(part))
        offset += len(part)
    return struct.pack("<QIBB", 4223, len(parts), 0, 0) + table + b"".join(parts)


def fields(schedules: list[GoalSchedule]) -> list[dict[str, object]]:
    return [
        {name: value for name, value in vars(one).items() if name not in ("lines", "unit")}
        for one in schedules
    ]


def test_a_file_of_loggopsim_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text(broadcast(16))
    assert is_goal(str(FILE))
    schedules = read_goal(str(FILE))
    assert fields(schedules) == fields(read_goal(str(tmp_path / "a.goal")))
    assert written(schedules) == FILE.read_bytes()
    times = [Replay([(path, 0.0)]).run().seconds for path in (FILE, tmp_path / "a.goal")]
    assert times[0] == times[1] > 0.0


def test_all_kinds_of_operations(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text(
        "num_ranks 2\nrank 0 {\na: calc 123456789012\nb: send 5b to 1 tag 7 cpu 3\nb irequires a\n"
        "c: recv 9b from -1 tag -1\nc requires a\nc requires b\n}\nrank 1 {\n"
        "a: recv 5b from 0 tag 7\nb: send 9b to 0 tag 4294967294\nb requires a\n}\n"
    )
    schedules = read_goal(str(tmp_path / "a.goal"))
    (tmp_path / "a.bin").write_bytes(written(schedules))
    found = read_goal(str(tmp_path / "a.bin"))
    assert fields(found) == fields(schedules)
    assert (found[0].peers[2], found[0].tags[2]) == (ANY, ANY)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    data = FILE.read_bytes()
    path = tmp_path / "a.bin"
    for length in range(8, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(UsageError, match=r"a\.bin: a binary schedule of GOAL, but it ends"):
            read_goal(str(path))
    generator = random.Random(1)
    refused = 0
    for _ in range(500):
        damaged = bytearray(data)
        damaged[generator.randrange(8, len(data))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            schedules = read_goal(str(path))
        except UsageError as error:
            refused += 1
            assert str(error).startswith(f"{path}: a binary schedule of GOAL, but ")
        else:
            for one in schedules:
                assert all(peer == ANY or 0 <= peer < len(schedules) for peer in one.peers)
    assert refused > 100


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        ("calc 1", {"kinds": [9]}, "operation 1 of rank 0 is neither"),
        ("send 1b to 0 tag 0", {"peers": [1]}, "operation 1 of rank 0 has a peer"),
        ("send 1b to 0 tag 0", {"tags": [ANY]}, "operation 1 of rank 0 sends with any tag"),
        ("calc 1", {"missing": [1]}, "operation 1 of rank 0 requires 1 others, and 0 release it"),
        ("calc 1", {"after_end": {0: [5]}}, "rank 0 releases an operation beyond its 1"),
    ],
)
def test_the_operation_that_is_wrong_is_named(
    tmp_path: Path, line: str, change: dict[str, object], message: str
) -> None:
    (tmp_path / "a.goal").write_text(f"num_ranks 1\nrank 0 {{\na: {line}\n}}\n")
    schedules = read_goal(str(tmp_path / "a.goal"))
    vars(schedules[0]).update(change)
    data = bytearray(written(schedules if "kinds" not in change else []))
    if "kinds" in change:
        data = bytearray(written(read_goal(str(tmp_path / "a.goal"))))
        data[data.index(struct.pack("<IB", 0, 3), 30) + 4] = 9
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        read_goal(str(tmp_path / "a.bin"))


def test_an_operation_that_never_ends_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text(
        "num_ranks 2\nrank 0 {\na: calc 5\nb: recv 5b from 1 tag 7\n}\nrank 1 {\n}\n"
    )
    (tmp_path / "a.bin").write_bytes(written(read_goal(str(tmp_path / "a.goal"))))
    with pytest.raises(UsageError, match=r"a\.bin, operation 2"):
        Replay([(tmp_path / "a.bin", 0.0)]).run()
