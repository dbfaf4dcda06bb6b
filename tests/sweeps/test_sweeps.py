"""Sweeps: the cases of a study run once each, also across kills, and give one table."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.sweeps.journal import Journal
from pysmpi.sweeps.plots import draw
from pysmpi.sweeps.study import SweepPlot
from pysmpi.sweeps.study_yaml import read_study

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """\
import ctypes, os, sys
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    with open({log!r}, "a+") as stream:
        stream.write("begun\\n")
        stream.seek(0)
        held = len(stream.readlines()) > {most}
    while held and os.path.exists({hold!r}):
        ctypes.CDLL(None).usleep(10_000)
mine = numpy.zeros(1000 * comm.size, "b")
begin = MPI.Wtime()
comm.Alltoall(mine, mine.copy())
if comm.rank == 0:
    print("took", MPI.Wtime() - begin, "s")
"""

STUDY = """\
program: prog.py
platforms: [cluster, graphene]
models: [hybrid, loggps]
selectors: [ompi, mpich]
placements: [core, node]
ranks: [2, 3, 4]
options: {compute: none}
values: {alltoall: 'took ([0-9.e-]+) s'}
"""
CASES = 2 * 2 * 2 * 2 * 3


@pytest.fixture
def study(tmp_path):
    names = {name: str(tmp_path / name) for name in ("log", "hold")}
    (tmp_path / "prog.py").write_text(PROGRAM.format(**names, most=CASES // 2))
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "pysmpi", "sweep", *map(str, arguments)],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def keys(journal):
    if not journal.exists():
        return []
    lines = journal.read_bytes().split(b"\n")[:-1]  # text after the last newline is not whole
    return [json.loads(line)["key"] for line in lines[1:]]


def test_a_killed_sweep_goes_on_and_dask_workers_give_the_same_table(study, tmp_path):
    import distributed

    journal, log = tmp_path / "study.results" / "journal.jsonl", tmp_path / "log"
    (tmp_path / "hold").touch()  # it does not end before it is killed
    sweep = start(study, "--workers", "2")
    while len(keys(journal)) < CASES // 3:
        assert sweep.poll() is None, sweep.stderr.read()
        time.sleep(0.01)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait(timeout=300)
    (tmp_path / "hold").unlink()
    kept = keys(journal)
    begun = len(log.read_text().splitlines())  # some have ended, but are not in the journal
    assert CASES // 3 <= len(kept) < CASES
    assert not (journal.parent / "results.csv").exists()

    second = start(study, "--workers", "2")
    _, said = second.communicate(timeout=300)
    assert second.returncode == 0, said
    assert f"pysmpi: {len(kept)} of 48 cases were done before" in said
    every = keys(journal)
    assert every[: len(kept)] == kept
    assert len(every) == len(set(every)) == CASES
    # Only the others ran again. Each of the two workers of the killed sweep may have gone on with
    # the case that it had at hand, and with one that waited there.
    again = len(log.read_text().splitlines()) - begun
    assert CASES - len(kept) <= again <= CASES - len(kept) + 4

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        other = tmp_path / "elsewhere"
        remote = start(study, "-o", other, "--scheduler", cluster.scheduler_address)
        _, said = remote.communicate(timeout=300)
        assert remote.returncode == 0, said
    table = (journal.parent / "results.csv").read_text()
    assert (other / "results.csv").read_text() == table
    assert set(keys(other / "journal.jsonl")) == set(every)

    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == CASES and {row["exit_status"] for row in rows} == {"0"}
    axes = ("platform", "model", "selector", "placement", "ranks")
    assert len({tuple(row[name] for name in axes) for row in rows}) == CASES
    # A case gives the result of a separate run.
    row = rows[-1]
    assert [row[name] for name in axes] == ["graphene", "loggps", "mpich", "node", "4"]
    alone = pysmpi.run(
        str(tmp_path / "prog.py"), 4, platform="graphene", model="loggps", selector="mpich",
        map_by="node", compute="none",
    )  # fmt: skip
    assert float(row["seconds"]) == alone.seconds
    assert 0 < float(row["alltoall"]) < alone.seconds

    import pyarrow.parquet

    whole = pyarrow.parquet.read_table(journal.parent / "results.parquet").to_pylist()
    assert [str(one["seconds"]) for one in whole] == [one["seconds"] for one in rows]
    assert (journal.parent / "seconds.svg").read_text().startswith("<?xml")

    # A study that grows keeps the cases that it has.
    study.write_text(STUDY.replace("[2, 3, 4]", "[2, 3, 4, 1]").replace("graphene", "laptop"))
    listed = subprocess.run(
        [sys.executable, "-m", "pysmpi", "sweep", str(study), "--list"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=300,
    )  # fmt: skip
    states = [line.split()[0] for line in listed.stdout.splitlines()]
    assert states.count("0") == CASES // 2 and len(states) == 64


def behave(kind):
    import ctypes
    import signal
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if kind == "raise":
        raise ValueError("not today")
    if kind == "kill":
        # The process of the case, not only its rank.
        library = ctypes.CDLL(None)
        library.kill(library.getpid(), signal.SIGKILL)
    if kind == "hang":
        while True:  # outside of Python, so that no clock of the simulation sees it
            ctypes.CDLL(None).sleep(1)
    if kind == "wait":
        comm.recv()
    time.sleep(float(kind))
    return {"slept": float(kind), "name": "a"} if comm.rank == 0 else None


def test_a_program_that_is_not_python_is_an_error_of_the_case(tmp_path):
    from pysmpi.sweeps.server import run_case

    (tmp_path / "bad.py").write_text("x = 1\nx = [\n")
    place = str(tmp_path / "bad.py")
    row = run_case({"main": {"script": place}, "args": [], "options": {"nprocs": 2}})
    assert row == {"exit_status": 1, "error": f"{place}:2: SyntaxError: '[' was never closed"}


def test_cases_that_fail_are_rows(tmp_path):
    kinds = [["0.5"], ["raise"], ["kill"], ["hang"], ["wait"], ["2"]]
    reports = []
    arguments = dict(
        arguments=kinds, ranks=[2], compute="none", timeout=10.0, directory=tmp_path / "results"
    )
    table = pysmpi.sweep(behave, **arguments, report=lambda *numbers: reports.append(numbers))
    assert reports[0] == (0, 6, 0) and reports[-1] == (6, 6, 4)
    assert [row["arguments"] for row in table] == [kind for (kind,) in kinds]
    assert [row["exit_status"] for row in table] == [0, 1, 137, 124, 3, 0]
    errors = [row["error"] for row in table]
    assert "ValueError: not today" in errors[1]
    assert errors[2] == "ended by signal 9 (SIGKILL)"
    assert errors[3] == "no end after 10 s"
    assert "deadlock" in errors[4]
    assert [row["slept"] for row in table] == [0.5, None, None, None, None, 2.0]
    assert table.rows[0]["seconds"] == pytest.approx(0.5, rel=1e-3)
    assert table.rows[0]["platform"] == "cluster" and table.rows[0]["model"] == "hybrid"
    assert table.select(slept=2.0) == [table.rows[5]]
    assert len(table.failed) == 4
    # They are not run again, unless asked for.
    reports.clear()
    pysmpi.sweep(behave, **arguments, report=lambda *numbers: reports.append(numbers))
    assert reports == [(6, 6, 4)]
    arguments["arguments"] = kinds[:2]
    again = pysmpi.sweep(
        behave, **arguments, retry_failed=True, report=lambda *numbers: reports.append(numbers)
    )
    assert reports[1:] == [(1, 2, 0), (2, 2, 1)]
    assert again.rows == table.rows[:2]
    again.plot(tmp_path / "slept.png", x="arguments", y="seconds")
    assert (tmp_path / "slept.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="slept.svg: expected a column among .* got 'slep'"):
        again.plot(tmp_path / "slept.svg", y="slep")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("program: prog.py", "program: porg.py", r"s.yaml:1: program: expected a file, got none"),
        ("program: prog.py", "name: x", 'expected the key "program", got none'),
        ("models:", "model:", r's.yaml:3: model: expected a key .* did you mean "models"'),
        ("hybrid", "hybird", r"s.yaml:3: models\[0\]: --model hybird: .*did you mean hybrid"),
        ("graphene", "grafene", r's.yaml:2: platforms\[1\]: .*did you mean "graphene"'),
        ("graphene", "two.yaml", r"s.yaml:2: platforms\[1\]: .*two.yaml: expected a platform file"),
        ("mpich", "mpic", r"s.yaml:4: selectors\[1\]: selector mpic: no such .*did you mean mpich"),
        ("[core, node]", "rack", r"s.yaml:5: placements: expected core, .* got 'rack'"),
        ("[2, 3, 4]", "[2, x]", r"s.yaml:6: ranks\[1\]: expected a whole number, got 'x'"),
        ("[2, 3, 4]", "[2, 0]", r"s.yaml:6: ranks\[1\]: expected at least 1 rank, got 0"),
        ("[2, 3, 4]", "[2, 3, 2]", r"s.yaml:6: ranks\[2\]: expected each value once, got 2"),
        ("[2, 3, 4]", "[]", "s.yaml:6: ranks: expected at least one value"),
        ("compute: none", "compile: none", "s.yaml:7: options.compile: .*did you mean .compute"),
        ("compute: none", "explain: true", 's.yaml:7: options.explain: expected a key among'),
        ("compute: none", "cfg: none", "s.yaml:7: options.cfg: expected a dict"),
        ("([0-9.e-]+)", "[0-9.e-]+", "s.yaml:8: values.alltoall: .* with one group, got 0"),
        ("([0-9.e-]+)", "([0-9.e-]+", "s.yaml:8: values.alltoall: expected a regular expression,"),
        ("values:", "timeout: 10\nvalues:", "s.yaml:8: timeout: "),
        ("values:", "plots: [{file: a.svg, y: time}]\nvalues:",
         r"s.yaml:8: plots\[0\].y: expected a column among .*, got 'time'"),
        ("values:", "plots: [{file: a.txt}]\nvalues:",
         r"s.yaml:8: plots\[0\].file: expected a name with .svg"),
        ("ranks: [2, 3, 4]", "ranks: [2, 3", "s.yaml:7: expected well-formed YAML"),
    ],
)  # fmt: skip
def test_errors_of_a_study_name_its_line_and_key(tmp_path, old, new, message):
    (tmp_path / "prog.py").write_text("")
    assert old in STUDY
    (tmp_path / "s.yaml").write_text(STUDY.replace(old, new))
    with pytest.raises(UsageError, match=message):
        read_study(tmp_path / "s.yaml")


def test_a_journal_belongs_to_one_sweep_and_loses_only_what_a_kill_cut_off(tmp_path):
    row = {"exit_status": 0}
    with Journal(str(tmp_path)) as journal:
        journal.add("a", {}, row)
        with pytest.raises(UsageError, match="another sweep is writing there"):
            with Journal(str(tmp_path)):
                pass
        journal.add("b", {}, row)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with Journal(str(tmp_path)) as journal:
        assert journal.rows == {"a": row}
        journal.add("b", {}, row)
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b'"key"', b'"kay"', 1))
    with pytest.raises(UsageError, match="journal.jsonl:2: expected the journal of a sweep"):
        with Journal(str(tmp_path)):
            pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": ["hybird"]}, "did you mean hybrid"),
        ({"placements": ["rack"]}, "placements: expected core, socket, node, ppr:N:node, "),
        ({"ranks": [0]}, "pysmpi.sweep: ranks: expected at least 1 rank, got 0"),
        ({"ranks": [2, 2]}, r"pysmpi.sweep: ranks\[1\]: expected each value once"),
        ({"computed": "none"}, "pysmpi.sweep: expected an option among"),
        ({"workers": 0}, "workers: expected at least 1"),
        ({"scheduler": "tcp://127.0.0.1:9"}, "--scheduler tcp://127.0.0.1:9: expected the address"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(arguments, message, monkeypatch):
    monkeypatch.setattr("pysmpi.cluster.client.PATIENCE", 1.0)
    with pytest.raises(UsageError, match=message):
        pysmpi.sweep(behave, **arguments)


def test_a_scheduler_needs_dask_and_this_computer_does_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'pysmpi\[sweep\]'"):
        pysmpi.sweep(behave, arguments=[["1"]], scheduler="tcp://127.0.0.1:9")
    assert pysmpi.sweep(behave, arguments=[["0"]], compute="none").failed == []


def test_the_page_has_a_study_and_a_program_that_work(tmp_path, capsys):
    text = (ROOT / "docs" / "reference" / "sweep.md").read_text()
    (study,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "alltoall.py").write_text("")
    (tmp_path / "lab.yaml").write_text(
        "name: lab\nclusters:\n  - {name: lab, hosts: 'n[0-9]', network: {bandwidth: 1GBps, "
        "latency: 1us}}\n"
    )
    (tmp_path / "study.yaml").write_text(study)
    assert len(read_study(tmp_path / "study.yaml").cases()) == 192
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "page", "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["1000", "100000"]
    assert float(lines[0].split()[1]) < float(lines[1].split()[1])


def test_a_line_of_a_picture_has_one_point_for_each_place(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    from matplotlib.axes import Axes

    drawn = {}
    monkeypatch.setattr(
        Axes, "plot", lambda axes, x, y, *style, label, **more: drawn.setdefault(label, list(x))
    )
    rows = [
        {"model": model, "arguments": words, "ranks": ranks, "seconds": 1.0}
        for model in ("hybrid", "fluid") for words in ("8", "64") for ranks in (2, 4)
    ]  # fmt: skip
    axes = ("model", "arguments", "ranks")
    plot = SweepPlot(str(tmp_path / "some.svg"), lines=("model",))
    draw(rows, (*axes, "seconds"), axes, plot)
    assert drawn == {f"{m}, {w}": [2, 4] for m in ("hybrid", "fluid") for w in ("8", "64")}
