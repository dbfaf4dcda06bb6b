"""Damaged traces give one clear line, and the trace of a killed run can be read."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_trace_formats import exchange

import pysmpi
from pysmpi.analysis.why import read_analysis
from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines
from pysmpi.trace.model import Recording

# More by hand: PYSMPI_MUTATIONS=2000 PYSMPI_KILLS=20 pytest tests/trace/test_trace_robustness.py
MUTATIONS = int(os.environ.get("PYSMPI_MUTATIONS", "150"))
KILLS = int(os.environ.get("PYSMPI_KILLS", "6"))


def parts() -> None:
    """Partitioned messages of an intercommunicator; one side comes later."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    side = comm.rank // 3
    inter = comm.Split(side).Create_intercomm(0, comm, 0 if side else 3)
    data = bytearray(9000)
    if side == 1:
        inter.Recv(data, 2)
        time.sleep(1e-3)
        request = inter.Precv_init(data, 3, 1, 7)
        for _ in range(2):
            request.Start()
            request.Wait()
    elif inter.rank == 1:
        request = inter.Psend_init(data, 6, 0, 7)
        for _ in range(2):
            request.Start()
            request.Pready_range(0, 5)
            request.Wait()
    elif inter.rank == 2:
        inter.Send(data, 0)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small run in the formats that are read."""
    folder = tmp_path_factory.mktemp("traces")
    found = {}
    for name, program in (("jsonl", exchange), ("ti", exchange), ("parts", parts)):
        path = folder / f"run.{'ti' if name == 'ti' else 'jsonl'}"
        pysmpi.run(program, 4, trace=path, platform="graphene", compute="2us")
        found[name] = path.read_bytes()
    assert all(f'["{kind}",'.encode() in found["parts"] for kind in ("late", "post", "join"))
    return found


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A trace with one to three mistakes."""
    for _ in range(chance.randint(1, 3)):
        lines = data.split(b"\n")
        at = chance.randrange(len(lines))
        kind = chance.randrange(9)
        if kind == 0:
            data = data[: chance.randrange(len(data) + 1)]
            continue
        if kind == 1:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 2:
            lines[at] = lines[at].replace(b"send", b"dance").replace(b"compute", b"dream")
        elif kind == 3:
            del lines[at]
        elif kind == 4:
            lines.insert(at, lines[chance.randrange(len(lines))])
        elif kind == 5 and lines[at]:
            where = chance.randrange(len(lines[at]))
            new = bytes([chance.choice(b'0123456789-[]{}",.e nul\xff\x00')])
            lines[at] = lines[at][:where] + new + lines[at][where + 1 :]
        elif kind == 6:
            # Another number: a rank, a count, a tag, a date.
            pieces = lines[at].replace(b",", b" , ").split(b" ")
            numbers = [i for i, piece in enumerate(pieces) if piece.strip(b'[]"').isdigit()]
            if numbers:
                pieces[chance.choice(numbers)] = chance.choice(
                    [b"-1", b"99", b"0", b"1e400", b"3.5", b"9" * 30, b"x", b"null", b"[]"]
                )
            lines[at] = b" ".join(pieces)
        elif kind == 7:
            # A rank is missing.
            start = chance.choice([b"0 ", b"1 ", b"2 ", b"3 ", b'["rank",1', b'["communicator"'])
            lines = [line for line in lines if not line.startswith(start)]
        else:
            words = lines[at].split(b" ")
            lines[at] = b" ".join(words[: chance.randrange(len(words) + 1)])
        data = b"\n".join(lines)
    return data


def refusals(path, seed):
    """The number of commands that refuse a trace; others read it, and none fails otherwise."""
    uses = [
        lambda: Replay([(path, 0.0)], platform="graphene").run(),
        lambda: convert(str(path), str(path.parent / "out.ti")),
        lambda: read_analysis(str(path)),
        lambda: Replay([(path, 0.0)], platform="graphene").run(Recording()),
        lambda: read_lines(path),
    ]
    refused = 0
    for use in uses[: {".ti": 1, ".parquet": 3}.get(path.suffix)]:
        try:
            use()
        except UsageError as error:
            refused += 1
            assert "\n" not in str(error) and path.name in str(error), (seed, error)
        except Exception as error:
            raise AssertionError(f"mutation {seed}: {error!r}") from error
    return refused


@pytest.mark.parametrize("name", ["jsonl", "ti", "parts"])
def test_mutated_traces(name, traces, tmp_path):
    path = tmp_path / f"run.{'ti' if name == 'ti' else 'jsonl'}"
    refused = 0
    for seed in range(MUTATIONS):
        path.write_bytes(mutated(traces[name], random.Random(seed)))
        refused += refusals(path, seed)
    assert refused > MUTATIONS / 4


def test_a_communicator_has_a_whole_number(traces, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(re.sub(rb'(\["communicator",\d+),\d+', rb"\1,3.5", traces["jsonl"]))
    with pytest.raises(UsageError, match="the number of a communicator, got [0-9]+ and 3.5"):
        Replay([(path, 0.0)], platform="graphene").run(Recording())


@pytest.mark.parametrize("platform", ["g}aphene", 7, ["graphene"], {"a": 1}, "none.xml"])
def test_a_machine_that_cannot_be(platform, traces, tmp_path):
    first, rest = traces["jsonl"].split(b"\n", 1)
    facts = json.loads(first)
    facts["machine"]["platform"] = platform
    path = tmp_path / "run.jsonl"
    path.write_bytes(json.dumps(facts).encode() + b"\n" + rest)
    for use in (
        lambda: Replay([(path, 0.0)]).run(), lambda: convert(str(path), str(tmp_path / "out.ti")),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="run.jsonl: ") as caught:
            use()
        assert "\n" not in str(caught.value)


PROGRAM = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
print("begun", flush=True)
while True:
    comm.Allreduce(np.zeros(10), np.zeros(10))
    comm.sendrecv(1, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
"""


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "ti"])
def test_kill_at_random_moments(suffix, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    chance = random.Random(7)
    for _ in range(KILLS if suffix == "jsonl" else 2):
        trace = tmp_path / f"run.{suffix}"
        run = subprocess.Popen(
            [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "4", "--compute", "none",
             "--trace", trace.name, program.name],
            cwd=tmp_path, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.4))
        run.send_signal(signal.SIGKILL)
        run.wait(timeout=300)
        run.stdout.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", trace.name]
        if suffix == "ti":
            for line in trace.read_bytes().split(b"\n")[:-1]:
                assert line.split()[0] in (b"0", b"1", b"2", b"3") and len(line.split()) > 1
            continue
        if trace.stat().st_size == 0:
            continue
        try:
            recording = read_lines(trace)
        except UsageError as error:
            assert "got no whole line" in str(error)  # no part of it was on disk yet
            continue
        assert not recording.complete
        if suffix == "jsonl":
            whole = [json.loads(line) for line in trace.read_bytes().split(b"\n")[:-1]]
            calls = sum(record[0] == "call" for record in whole[1:])
            assert calls == len(recording.calls) + len(recording.blanks)


def test_mutated_tables(tmp_path: Path):
    """As for the other formats; the rows are changed, or the bytes of the file."""
    pyarrow = pytest.importorskip("pyarrow", reason="tables need the extra pysmpi[parquet]")
    import pyarrow.parquet as parquet

    path = tmp_path / "run.parquet"
    pysmpi.run(exchange, 4, trace=path, platform="graphene", compute="2us")
    whole, table = path.read_bytes(), parquet.read_table(path)
    refused = 0
    for seed in range(MUTATIONS // 3):
        chance = random.Random(seed)
        if seed % 3 == 0:
            data = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            path.write_bytes(data[: chance.randrange(len(data))] if seed % 2 else data)
        else:
            rows = table.to_pylist()
            for _ in range(chance.randint(1, 3)):
                at, other = chance.randrange(len(rows)), chance.randrange(len(rows))
                kind = chance.randrange(4)
                if kind == 0:
                    del rows[at]
                elif kind == 1:
                    rows[at], rows[other] = rows[other], rows[at]
                elif kind == 2:
                    name = chance.choice(["number", "rank", "thread", "tag", "sent", "start"])
                    rows[at] |= {name: chance.choice([None, -1, 0, 99, 2**31 - 1])}
                else:
                    name = chance.choice(["kind", "name", "site", "rest"])
                    rows[at] |= {name: chance.choice([None, "", "x", "call", "[]"])}
            parquet.write_table(pyarrow.Table.from_pylist(rows, schema=table.schema), path)
        refused += refusals(path, seed)
    assert refused > MUTATIONS / 4
