"""Replay of time-independent traces: SMPI's own predictions, and traces that are wrong."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.replay import Replay

DATA = Path(__file__).parents[1] / "data"
ROWS = json.loads((DATA / "replay" / "replay.json").read_text())


def trace_file(name, folder):
    """The path of a trace, unpacked."""
    path = DATA / "replay" / name
    if path.exists():
        return path
    unpacked = folder / name
    unpacked.write_bytes(gzip.decompress(path.with_name(f"{name}.gz").read_bytes()))
    return unpacked


def replayed(text, folder, **options):
    """Replay a trace that is written out."""
    file = folder / "some.ti"
    file.write_text(text)
    return Replay([(file, 0.0)], **options).run()


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{row['platform']}.{row['model']}-{row['ranks']}" for row in ROWS]
)
def test_smpirun_predicts_the_same(row, tmp_path):
    machine = DATA / "platforms" / f"{row['platform']}.{row['model']}.xml"
    trace = trace_file(row["trace"], tmp_path)
    result = Replay([(trace, 0.0)], platform=machine).run()
    assert result.nprocs == row["ranks"]
    # smpirun prints six decimals.
    assert result.seconds == pytest.approx(row["seconds"], rel=5e-5, abs=1e-6)


def test_an_index_names_a_file_a_rank(tmp_path):
    whole = trace_file("halo_solver_4.ti", tmp_path)
    lines = whole.read_text().splitlines()
    folder = tmp_path / "smpi_simgrid.txt_files"
    folder.mkdir()
    for rank in range(4):
        own = [line for line in lines if line.startswith(f"{rank} ")]
        (folder / f"0_rank-{rank}.txt").write_text("\n".join(own) + "\n")
    index = tmp_path / "smpi_simgrid.txt"
    index.write_text("".join(f"{folder.name}/0_rank-{rank}.txt\n" for rank in range(4)))
    machine = DATA / "platforms" / "flat.default.xml"
    one, other = (Replay([(file, 0.0)], platform=machine).run() for file in (whole, index))
    assert one.end_seconds == other.end_seconds and one.messages == other.messages


def test_lines_of_ranks_may_alternate(tmp_path):
    lines = trace_file("halo_solver_8.ti", tmp_path).read_text().splitlines(keepends=True)
    ranks = [[line for line in lines if line.startswith(f"{rank} ")] for rank in range(8)]
    dealt, chance = [], random.Random(1)
    while any(ranks):
        one = chance.choice([left for left in ranks if left])
        dealt.append(one.pop(0))
    whole = replayed("".join(lines), tmp_path, platform="graphene")
    assert replayed("".join(dealt), tmp_path, platform="graphene").end_seconds == whole.end_seconds


def test_open_requests_pass_from_one_piece_to_the_next(tmp_path):
    """A request stays open over more actions than the kernel gets at once, and over collectives."""
    few = "0 isend 1 7 1000 6\n1 irecv 0 7 1000 6\n"
    many = "".join(f"{rank} compute 1000\n{rank} barrier\n" for rank in (0, 1) for _ in range(5000))
    ends = "0 wait 0 1 7\n1 wait 0 1 7\n0 compute 3e6\n"
    result = replayed(few + many + ends, tmp_path, platform="graphene")
    assert result.end_seconds[0] > result.end_seconds[1] > 5000 * 1e-6
    assert result.messages > 10_000


def test_two_traces_share_the_machine_and_begin_when_they_should(tmp_path):
    trace = tmp_path / "pair.ti"
    trace.write_text("0 send 1 0 100e6 6\n1 recv 0 0 100e6 6\n")
    alone = Replay([(trace, 0.0)], platform="graphene").run()
    both = Replay([(trace, 0.0), (trace, 5.0)], platform="graphene").run()
    assert both.instances[0]["end_seconds"] == pytest.approx(alone.seconds, rel=1e-6)
    assert both.instances[1]["end_seconds"] == pytest.approx(5.0 + alone.seconds, rel=1e-6)
    assert both.nprocs == 4


def test_cores_may_be_faster_than_the_machine_says(tmp_path):
    text = "0 init\n0 compute 8e9\n0 finalize\n"
    assert replayed(text, tmp_path, core_speed=4e9).seconds == pytest.approx(2.0)
    assert replayed(text, tmp_path, core_speed=8e9).seconds == pytest.approx(1.0)


def test_a_test_keeps_what_is_not_complete(tmp_path):
    text = (
        "0 compute 1e9\n0 send 1 3 10 6\n"
        "1 irecv 0 3 10 6\n1 test 0 1 3\n1 wait 0 1 3\n1 compute 1e9\n"
    )
    result = replayed(text, tmp_path, core_speed=1e9)
    assert result.end_seconds[1] == pytest.approx(2.0, rel=1e-3)


WRONG = {
    "x" * 5000 + "\n": r"line 1: no such file 'x{80}' for rank 0, expected a trace with",
    "0 send 1 0 100\n": r"line 1: send: expected a destination from 0 to 0, got '1'",
    "0 compute\n": r"line 1: compute: expected flops",
    "0 compute -3\n": r"line 1: compute: expected flops, a number that is not neg",
    "0 compute nan\n": r"line 1: compute: expected flops.*, got 'nan'",
    "0 init\n0 sleep 0 # a\x0cb\u2028c\n0 dance\n": r"line 3: no such action: 'dance'",
    "0 dance 3\n": r"line 1: no such action: 'dance'",
    "0 init\n0 iallreduce 3\n": r"line 2: expected .*, got action 'iallreduce'",
    "0 init\n0 bcast 1.5\n": r"line 2: bcast: expected a count, a whole number",
    "0 bcast 10 0 99\n": r"line 1: bcast: expected a number from 0 to 59, got datatype '99'",
    "0 barrier 3 4\n": r"line 1: barrier: expected the end of the line after 0 arguments, got '3'",
    "0 init\nx init\n": r"line 2: expected the number of a rank, got 'x'",
    "0 init\n2 init\n": r"got lines of rank 2 and none of rank 1",
    "": r"expected a time-independent trace, got no line",
    "0 recv 0 5 10 6\n": r"1 rank never ends, expected each message .*: rank 0 at .*line 1",
    "0 barrier\n1 init\n": r"1 rank never ends, .*: rank 0 at .*, line 1",
    "0 bcast 10\n1 reduce 10 0\n": r"line 2: rank 1 calls reduce where rank 0 calls bcast",
    "nowhere.txt\n": r"line 1: no such file 'nowhere.txt' for rank 0",
}


@pytest.mark.parametrize("text, says", WRONG.items(), ids=[repr(text)[:30] for text in WRONG])
def test_a_wrong_trace_is_refused_in_one_line(text, says, tmp_path):
    with pytest.raises(UsageError) as caught:
        replayed(text, tmp_path)
    assert re.search(says, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def mutated(lines, chance):
    """One thing is wrong somewhere."""
    lines = list(lines)
    at = chance.randrange(len(lines))
    kind = chance.randrange(7)
    words = lines[at].split()
    if kind == 0:
        del lines[at:]
    elif kind == 1:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 2:
        del lines[at]
    elif kind == 3 and len(words) > 2:
        words[chance.randrange(2, len(words))] = chance.choice(["-7", "x", "1e400", "3.5", "99"])
        lines[at] = " ".join(words)
    elif kind == 4:
        lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
    elif kind == 5:
        words[1] = chance.choice(["", "\0", "hop", "wait", "bcast", "\udcff"])
        lines[at] = " ".join(words)
    else:
        lines.insert(at, chance.choice(lines))
    return lines


def test_mutated_traces_are_replayed_or_refused(tmp_path):
    """Never a traceback, never a hang: PYSMPI_MUTATIONS traces with one mistake each."""
    count = int(os.environ.get("PYSMPI_MUTATIONS", "500"))
    lines = trace_file("halo_solver_4.ti", tmp_path).read_text().splitlines()[:]
    short = [line for rank in range(4)
             for line in [one for one in lines if one.startswith(f"{rank} ")][:40]]  # fmt: skip
    chance = random.Random(7)
    refused = 0
    for _ in range(count):
        text = "\n".join(mutated(short, chance)) + "\n"
        try:
            file = tmp_path / "mutated.ti"
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
            Replay([(file, 0.0)], platform="graphene").run()
        except UsageError as error:
            refused += 1
            assert "\n" not in str(error)
    assert count / 4 < refused < count


def pysmpi(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )


def test_the_command_line_says_what_it_predicts(tmp_path):
    trace = trace_file("halo_solver_4.ti", tmp_path)
    machine = DATA / "platforms" / "flat.default.xml"
    done = pysmpi(
        "replay", str(trace), str(trace), "--begin", "0s", "--begin", "1s", "--platform",
        str(machine), "--report", "r.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "predicted time 1.043 s: 8 ranks on flat.default" in done.stderr
    assert "from 1 s to 1.043 s" in done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["instances"][1]["begin_seconds"] == 1.0 and len(report["end_seconds"]) == 8


def test_the_command_line_refuses_in_one_line(tmp_path):
    (tmp_path / "bad.ti").write_text("0 jump 1\n")
    done = pysmpi("replay", "bad.ti", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.strip() == "pysmpi: error: bad.ti, line 1: no such action: 'jump'"
    done = pysmpi("replay", "none.ti", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("none.ti: cannot be read: No such file or directory")
    done = pysmpi("replay", "bad.ti", "--begin", "1s", "--begin", "2s", cwd=tmp_path)
    assert done.returncode == 2 and "expected one time for each of 1 trace, got 2" in done.stderr
