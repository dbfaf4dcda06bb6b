"""Recordings of real machines, errors of bad ones, and the arithmetic of comparisons."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.main import status_of
from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.validate.comparison import (
    COMPUTE,
    ValidatedFigure,
    Validation,
    compute_part,
    figure,
    origin,
    percent,
    report,
    summary,
    text,
)
from pysmpi.validate.page import page
from pysmpi.validate.prediction import TRIAD, PredictedJob, rank_file
from pysmpi.validate.recording import MeasuredJob, Times, curves, read
from pysmpi.validate.script import JOBS, PROGRAMS, job, layouts, script, settings

Status = Callable[..., tuple[int, str, str]]
FIRST = {
    "job": "a", "format": "pysmpi-validate", "version": 1, "ranks": 2, "hosts": ["n0", "n1"],
    "cpus": [[0], [0]], "cores": [8, 8], "mpi": "MPICH 5", "processor": "x",
    "settings": settings("S"),
}  # fmt: skip
LATE = {"job": "a", "case": "latency", "bytes": 8, "seconds": [3e-6, 2e-6, 9e-6]}
END = {"job": "a", "end": True}


@pytest.fixture
def status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Status:
    """Run a command line in this process: its exit status, output and error output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = status_of(arguments)
        return code, *capfd.readouterr()

    return run


def written(path: Path, *lines: Any, tail: str = "") -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return str(path)


def test_a_recording_has_its_jobs(tmp_path: Path) -> None:
    again = {**LATE, "job": "b", "seconds": [5e-6]}
    path = written(
        tmp_path / "r", FIRST, LATE, END, {**FIRST, "job": "b"}, again, {**END, "job": "b"}
    )
    (only,) = read([path]).jobs
    assert (only.ranks, only.nodes, only.layout) == (2, 2, "2 x 1")
    assert only.times == {("latency", 8): Times((5e-6,))}  # the latest
    assert only.facts == {"mpi": "MPICH 5", "processor": "x"}
    assert not read([path]).remarks


def test_what_an_ended_job_left_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "r", FIRST, LATE, tail='{"job": "a", "case": "lat')
    found = read([path])
    assert found.jobs[0].times[("latency", 8)].seconds == (3e-6, 2e-6, 9e-6)
    assert found.remarks == [
        f"{path}:3: the line is not complete, left out",
        f"{path}: the job of 2 x 1 ended early, with 1 results",
    ]
    lost = written(tmp_path / "s", {**LATE, "job": "z"}, FIRST, LATE, END)
    assert read([lost]).remarks == [
        f"{lost}:1: a result without the first line of its job, left out"
    ]


@pytest.mark.parametrize(
    ("changed", "line", "said"),
    [
        ({"version": 2}, LATE, ":1: the recording has version 2, expected 1"),
        ({"version": None}, LATE, ":1: the recording has version None, expected 1"),
        ({"format": "x"}, LATE, ":1: expected a recording of pysmpi-validate, got 'x'"),
        ({"hosts": ["n0"]}, LATE, ":1: hosts: expected the names of 2 hosts, got ['n0']"),
        ({"hosts": ["n0", 7]}, LATE, ":1: hosts: expected the names of 2 hosts"),
        ({"ranks": "2"}, LATE, ":1: ranks: expected a whole number, got '2'"),
        ({"ranks": None}, LATE, ":1: ranks: expected a whole number, got None"),
        ({"settings": {}}, LATE, ":1: settings: expected largest, elements"),
        ({}, {**LATE, "seconds": []}, ":2: seconds: expected a list of seconds, got []"),
        ({}, {**LATE, "seconds": [-1]}, ":2: seconds: expected a list of seconds, got [-1]"),
        ({}, {**LATE, "seconds": ["1"]}, ":2: seconds: expected a list of seconds"),
        ({}, {**LATE, "bytes": 1.5}, ":2: bytes: expected a whole number, got 1.5"),
        ({}, {**LATE, "bytes": -1}, ":2: bytes: expected a whole number, got -1"),
        ({}, {"case": "latency"}, ":2: expected a line of a recording"),
        ({}, [1], ":2: expected a line of a recording"),
        ({}, END, "no results, expected a recording of the script"),
    ],
)  # fmt: skip
def test_errors_of_recordings_say_where(
    tmp_path: Path, changed: dict[str, Any], line: Any, said: str
) -> None:
    path = written(tmp_path / "r", {**FIRST, **changed}, line)
    with pytest.raises(UsageError) as caught:
        read([path])
    assert str(caught.value).startswith(path) and said in str(caught.value)


def test_files_without_results(tmp_path: Path) -> None:
    for content in (
        "",
        "[1]\n",
        "# OSU MPI Broadcast Latency Test v7\n1 3.0\n",
        '{"job": "a", "for',
    ):
        (tmp_path / "f").write_text(content)
        with pytest.raises(UsageError, match="no results, expected a recording"):
            read([str(tmp_path / "f")])


def test_more_ranks_than_cores_are_left_out(tmp_path: Path) -> None:
    crowded = {**FIRST, "hosts": ["n0", "n0"], "cores": [1, 1], "job": "b"}
    path = written(
        tmp_path / "r", FIRST, LATE, END, crowded, {**LATE, "job": "b"}, {**END, "job": "b"}
    )
    found = read([path])
    assert [job.layout for job in found.jobs] == ["2 x 1"]
    assert found.remarks[0].startswith("1 x 2: more ranks than cores on a host, left out")


def test_two_settings_are_not_mixed(tmp_path: Path) -> None:
    one = written(tmp_path / "r", FIRST, LATE, END)
    other = written(tmp_path / "s", {**FIRST, "settings": settings("W")}, LATE, END)
    with pytest.raises(UsageError, match="2 x 1 was measured with two settings"):
        read([one, other])


OSU = """\
# OSU MPI Latency Test v5.9
0 1.0
1 1.5
8 1.6 Pass
# OSU MPI Bandwidth Test v5.9
1 4.0
8 32.0
# OSU MPI Bi-Directional Bandwidth Test v7.0
8 50.0
# OSU MPI Multiple Bandwidth / Message Rate Test v5.9
# [ pairs: 4 ] [ window size: 64 ]
8 64.0 8000000.0
# OSU MPI Allreduce Latency Test v5.9
4 12.0
# OSU MPI All-to-All Personalized Exchange Latency Test v5.9
1 20.0
# OSU MPI Broadcast Latency Test v5.9
1 99.0
"""


def test_output_of_osu_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "osu.txt"
    path.write_text(OSU)
    pair, every = read([str(path)], (4, 2)).jobs
    assert (pair.layout, every.layout) == ("2 x 1", "4 x 2")
    assert {key: one.seconds[0] for key, one in pair.times.items()} == pytest.approx(
        {("latency", 1): 1.5e-6, ("latency", 8): 1.6e-6, ("bandwidth", 1): 2.5e-7,
         ("bandwidth", 8): 2.5e-7, ("bidirectional", 8): 1.6e-7}
    )  # fmt: skip
    assert {key: one.seconds[0] for key, one in every.times.items()} == pytest.approx(
        {("message_rate", 8): 1.25e-7, ("allreduce", 4): 12e-6, ("alltoall", 1): 20e-6}
    )
    path.write_text(OSU.replace("8 50.0", "8 fast"))
    with pytest.raises(UsageError, match=r"osu.txt:9: expected bytes and a number above 0"):
        read([str(path)])


def test_a_recording_is_fitted(tmp_path: Path, status: Status) -> None:
    more = [
        {"job": "a", "case": case, "bytes": size, "seconds": [2 * value, value]}
        for case, size, value in (
            ("latency", 1, 2e-6), ("latency", 1 << 20, 2e-4), ("bandwidth", 1, 1e-6),
            ("bandwidth", 1 << 20, 1e-4),
        )
    ]  # fmt: skip
    near = {**FIRST, "job": "b", "hosts": ["n0", "n0"]}
    path = written(tmp_path / "r.jsonl", near, {**more[0], "job": "b"}, FIRST, *more, END)
    times, rates = curves([path])
    assert times == {1: 2e-6, 1 << 20: 2e-4}
    assert rates == pytest.approx({1: 1e6, 1 << 20: 1.048576e10})
    code, _, err = status("platform", "fit", path, "-o", "made.yaml")
    assert code == 0, err
    assert "bandwidth: 10.48576GBps" in Path("made.yaml").read_text()
    with pytest.raises(UsageError, match="expected the latency and bandwidth of two ranks"):
        curves([written(tmp_path / "s", FIRST, LATE, END)])


@pytest.mark.parametrize(
    ("case", "nbytes", "seconds", "ranks", "value", "unit"),
    [
        ("latency", 8, 2e-6, 2, 2.0, "us"),
        ("allreduce", 8, 5e-5, 16, 50.0, "us"),
        ("alltoall", 8, 5e-5, 16, 50.0, "us"),
        ("bandwidth", 1 << 20, 1e-4, 2, 10.48576, "GB/s"),
        ("bidirectional", 1 << 20, 5e-5, 2, 20.97152, "GB/s"),
        ("message_rate", 8, 1e-7, 8, 10.0, "M messages/s"),
        ("triad", 1 << 20, 1e-3, 4, 4.194304, "GB/s"),
        ("npb_cg", 0, 1.5, 4, 1.5, "s"),
    ],
)
def test_figures_have_the_units_of_their_programs(
    case: str, nbytes: int, seconds: float, ranks: int, value: float, unit: str
) -> None:
    found = figure(case, nbytes, seconds, ranks)
    assert found == (pytest.approx(value), unit)


def compared(**options: str) -> Validation:
    """Two jobs: a program takes 2 s on one rank (predicted 3), 1.2 s on two (predicted 1.9)."""
    one = MeasuredJob(("n0",), times={("npb_cg", 0): Times((2.0, 8.0, 1.0), (1.5, 1.0, 2.0))})
    two = MeasuredJob(
        ("n0", "n1"),
        times={
            ("npb_cg", 0): Times((1.2, 1.2, 1.2)),
            ("bandwidth", 1 << 20): Times((1e-4,)),
            ("latency", 8): Times((1e-6,)),
            ("triad", 1000): Times((1e-6,)),
        },
    )
    predictions = [
        PredictedJob({("npb_cg", 0): 3.0}, {"npb_cg": 0.0}),
        PredictedJob(
            {("npb_cg", 0): 1.9, ("bandwidth", 1 << 20): 2e-4, ("latency", 8): 1.5e-6,
             TRIAD: 2e-9},
            {"npb_cg": 0.4},
        ),
    ]  # fmt: skip
    return Validation([one, two], predictions, **options)


def test_errors_are_those_of_the_figures_shown() -> None:
    rows = {(row.case, row.ranks): row for row in compared().rows}
    assert rows["npb_cg", 1].error == pytest.approx(0.5)  # of the median, 2 s
    assert rows["latency", 2].error == pytest.approx(0.5)  # a time: half as much again
    assert rows["bandwidth", 2].error == pytest.approx(-0.5)  # a rate: half
    assert rows["triad", 2].error == pytest.approx(-0.5)
    assert rows["triad", 2].measured == pytest.approx(2.0)  # GB/s of two ranks


def test_the_error_of_a_program_has_its_parts() -> None:
    (row,) = [row for row in compared().rows if row.case == "npb_cg" and row.ranks == 2]
    # 1.5 s of compute are 1.5 times too long: 0.5 s of 1.2 s.
    assert row.compute == pytest.approx(0.5 / 1.2)
    assert row.rest == pytest.approx(1.9 / 1.2 - 1 - 0.5 / 1.2)
    assert row.messages == pytest.approx(0.4 / 1.9)
    assert origin(row) == "compute"
    assert compute_part(10.0, 4.0, 1.0, 5.0) == 0.0
    assert compute_part(10.0, 4.0, 0.5, 6.0) == pytest.approx(-1.0)


def test_the_origin_of_the_rest() -> None:
    def row(nodes: int, compute: float | None, rest: float | None) -> ValidatedFigure:
        return ValidatedFigure("x", 0, nodes, 4, "", "", "s", 1.0, 1.0, compute, rest)

    assert origin(row(4, 0.1, -0.3)) == "messages"
    assert origin(row(2, 0.1, -0.3)) == "messages or memory"
    assert origin(row(2, -0.4, 0.3)) == "compute"
    assert origin(row(2, None, None)) == "not known without a run on one rank"


def test_the_clock_and_the_statistic_are_chosen() -> None:
    def alone(**options: str) -> float:
        return compared(**options).of(COMPUTE)[0].measured

    assert alone() == 2.0
    assert alone(statistic="minimum") == 1.0
    assert alone(clock="processor") == 1.5
    assert alone(clock="processor", statistic="minimum") == 1.0


def test_summaries() -> None:
    def row(error: float) -> ValidatedFigure:
        return ValidatedFigure("x", 0, 1, 1, "", "", "s", 1.0, 1.0 + error)

    found = summary("k", [row(0.1), row(-0.5), row(0.3)])
    assert found is not None
    assert (found.count, found.kind) == (3, "k")
    assert found.mean == pytest.approx(0.3)
    assert found.median == pytest.approx(0.3)
    assert found.worst == pytest.approx(-0.5)
    assert summary("k", []) is None


def test_advice_names_commands_and_values() -> None:
    comparison = compared()
    lines = "\n".join(comparison.advice(["my run.jsonl"]))
    assert "pysmpi platform fit 'my run.jsonl' -o machine.yaml" in lines
    assert "predicted 1.5 times as long as measured" in lines and "pysmpi calibrate host" in lines
    assert "memory/core-bandwidth: 1GBps, memory/bandwidth: 1GBps" in lines  # of one of two nodes
    right = compared()
    right.rows = [row for row in right.rows if abs(row.error) < 0.1]
    assert right.advice([]) == []


def test_text_json_and_page_have_the_same_figures() -> None:
    comparison = compared()
    facts = report(comparison, ["r"])
    assert [one["kind"] for one in facts["summaries"]][:2] == ["compute", "memory"]
    assert facts["rows"][0]["error"] == comparison.rows[0].error
    assert "npb_cg               2 x 1      1.2 s      1.9 s   +58.3%" in text(
        comparison, ["r"], []
    )
    comparison.jobs[0].facts["mpi"] = "<script>alert(1)</script>"
    made = page(comparison, "<b>", ["r"], ["a & b"])
    assert "<script>alert" not in made and "<b>:" not in made and "a &amp; b" in made
    assert "+58.3%" in made and made.count("<svg") == 2
    assert balanced(made)


class Tags(HTMLParser):
    """Follows the open elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def balanced(text: str) -> bool:
    """Whether each element of a page ends where it should."""
    tags = Tags()
    tags.feed(text)
    return not tags.open and not tags.wrong


MACHINE: dict[str, Any] = {
    "name": "m", "clusters": [{"name": "m", "hosts": "m-[0-1]", "cores": 4,
                               "network": {"bandwidth": "1GBps", "latency": "1us"}}],
}  # fmt: skip


def test_ranks_have_their_places_of_the_recording() -> None:
    described = load(MACHINE)
    hosts = ("b", "b", "a", "a")
    assert rank_file(MeasuredJob(hosts), described).split("\n")[:4] == [
        "rank 0=m-0 slot=0", "rank 1=m-0 slot=1", "rank 2=m-1 slot=0", "rank 3=m-1 slot=1",
    ]  # fmt: skip
    bound = MeasuredJob(hosts, cpus=((3,), (0,), (2,), (1,)))
    assert rank_file(bound, described).split("\n")[:2] == ["rank 0=m-0 slot=3", "rank 1=m-0 slot=0"]
    # Cores that the machine does not have, or that two ranks share, are not those of a binding.
    for cpus in (((9,), (0,), (2,), (1,)), ((0,), (0,), (2,), (1,)), ((0, 1), (0,), (2,), (1,))):
        assert "rank 1=m-0 slot=1" in rank_file(MeasuredJob(hosts, cpus=cpus), described)


def test_a_machine_that_is_too_small_is_named() -> None:
    described = load(MACHINE)
    with pytest.raises(
        UsageError, match="3 x 1: the recording has 3 hosts, expected at most the 2"
    ):
        rank_file(MeasuredJob(("a", "b", "c")), described)
    with pytest.raises(UsageError, match="1 x 5: 5 ranks ran on a, expected at most the 4 cores"):
        rank_file(MeasuredJob(("a",) * 5), described)


def test_layouts() -> None:
    assert layouts(1, 2) == [(1, 1), (1, 2)]
    assert layouts(4, 6) == [(1, 1), (1, 2), (1, 4), (1, 6), (2, 1), (2, 6), (4, 1), (4, 6)]
    assert layouts(3, 1) == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("kind", JOBS)
def test_jobs_are_scripts_of_bash(kind: str) -> None:
    made = job(kind, "v.py", "python3", "v.jsonl", layouts(2, 4))
    done = subprocess.run(["bash", "-n"], input=made, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "measure 2 4\n" in made and "python3 v.py v.jsonl" in made


def test_the_script_needs_no_pysmpi() -> None:
    for name in PROGRAMS:
        made = script(settings(name))
        compile(made, "validate.py", "exec")
        assert "pysmpi" not in {
            line.split()[1].partition(".")[0]
            for line in made.splitlines()
            if line.startswith(("import ", "from "))
        }


def test_the_script_is_written_once(status: Status, tmp_path: Path) -> None:
    code, out, err = status("validate", "script", "--nodes", "2", "--cores", "4")
    assert code == 0 and "nodes x ranks: 1 x 1, 1 x 2, 1 x 4, 2 x 1, 2 x 4" in err
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"validate.py", *(f"validate.{kind}.sh" for kind in JOBS)}
    code, _, err = status("validate", "script")
    assert code == 2 and "validate.py: exists; --force overwrites it" in err
    assert status("validate", "script", "--force")[0] == 0
    for wrong, said in (
        (("-o", "x.txt"), "expected a file called .py"),
        (("-o", "a b.py"), "expected a name of letters"),
        (("--largest", "1B"), "expected 4B to 1GiB"),
        (("--cores", "0"), "--cores"),
    ):
        code, _, err = status("validate", "script", *wrong)
        assert code == 2 and said in err, wrong


def test_wrong_options_of_a_comparison(status: Status, tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", FIRST, LATE, END)
    for wrong, said in (
        (("--layout", "2"), "expected nodes and ranks on each"),
        (("--layout", "1x1"), "expected nodes and ranks on each"),
        (("-o", "x.pdf"), "expected a file called .html"),
        (("--platform", "none.yaml"), "none.yaml"),
    ):
        code, _, err = status("validate", path, *wrong)
        assert code == 2 and said in err, wrong
    assert status("validate", "none.jsonl")[0] == 2


def test_the_script_under_pysmpi_is_predicted_exactly(status: Status, tmp_path: Path) -> None:
    """A recording of a simulated machine, and its prediction on the same machine."""
    options = ("--class", "S", "--largest", "64KiB", "--repeats", "2")
    assert status("validate", "script", *options)[0] == 0
    same = ("--platform", "graphene", "--cfg", "smpi/wtime:0")
    for ranks in ("2", "4"):
        code, _, err = status(
            "run", "-q", "-n", ranks, *same, "--map-by", "node", "--compute", "none",
            "validate.py", "v.jsonl", "--only", "messages,jacobi2d",
        )  # fmt: skip
        assert code == 0, err
    # This computer has fewer cores than the four simulated hosts' jobs have ranks a host.
    code, out, err = status(
        "validate", "v.jsonl", *same, "--compute", "none", "--json", "-o", "page.html"
    )
    assert code == 0, err
    facts = json.loads(out)
    rows = facts["rows"]
    assert {row["layout"] for row in rows} == {"2 x 1", "4 x 1"}
    cases = {row["case"] for row in rows if row["layout"] == "2 x 1"}
    assert cases == {
        "latency", "bandwidth", "bidirectional", "message_rate", "allreduce", "alltoall", "jacobi2d"
    }  # fmt: skip
    worst = max(rows, key=lambda row: abs(row["error"]))
    assert abs(worst["error"]) < 0.03, worst  # windows of the script run into each other
    assert facts["advice"] == []
    assert balanced((tmp_path / "page.html").read_text())


def test_the_triad_follows_the_file(status: Status, tmp_path: Path) -> None:
    """Four cores of 10 GB/s share 25 GB/s."""
    made = {**MACHINE, "config": {"memory/core-bandwidth": "10GBps", "memory/bandwidth": "25GBps"}}
    (tmp_path / "m.yaml").write_text(json.dumps(made))
    jobs = []
    for ranks in (1, 2, 4):
        name = str(ranks)
        first = {
            **FIRST,
            "job": name,
            "ranks": ranks,
            "hosts": ["n"] * ranks,
            "cpus": None,
            "cores": None,
        }
        nbytes = 40 * settings()["elements"]
        jobs += [first, {"job": name, "case": "triad", "bytes": nbytes, "seconds": [0.01]}]
    path = written(tmp_path / "r.jsonl", *jobs)
    code, out, err = status("validate", path, "--platform", "m.yaml", "--json")
    assert code == 0, err
    found = {row["ranks"]: row["predicted"] for row in json.loads(out)["rows"]}
    assert found == pytest.approx({1: 10.0, 2: 20.0, 4: 25.0}, rel=1e-3)


def test_noisy_repeats_are_said() -> None:
    quiet = MeasuredJob(("n0",), times={("npb_cg", 0): Times((1.0, 1.01, 1.02))})
    noisy = MeasuredJob(("n0",), times={("npb_cg", 0): Times((1.0, 1.5, 3.0))})
    predictions = [PredictedJob({("npb_cg", 0): 1.0}, {"npb_cg": 0.0})]
    assert Validation([quiet], predictions).remarks() == []
    (line,) = Validation([noisy], predictions).remarks()
    assert "differ by 50% (median)" in line


def test_no_speed_helps_programs_of_both_signs() -> None:
    times = {(name, 0): Times((1.0,)) for name in ("a", "b", "c")}
    predicted = PredictedJob({("a", 0): 0.5, ("b", 0): 1.0, ("c", 0): 1.6})
    (line,) = Validation([MeasuredJob(("n0",), times=times)], [predicted]).advice([])
    assert "no speed of the core helps" in line


def test_errors_are_written_for_people() -> None:
    assert [percent(0.0244, "+"), percent(-0.5, "+"), percent(9.99), percent(87.118, "+")] == [
        "+2.4%", "-50.0%", "999.0%", "+8,712%",
    ]  # fmt: skip


def test_a_part_or_a_case_is_measured_alone(status: Status) -> None:
    assert status("validate", "script", "--class", "S", "--largest", "1KiB")[0] == 0
    run = ("run", "-q", "-n", "2", "--compute", "none", "validate.py", "v.jsonl", "--only")
    assert status(*run, "allreduce,npb_cg", "--simulated", "1")[0] == 0
    (only,) = read(["v.jsonl"]).jobs
    assert {case for case, _ in only.times} == {"allreduce", "npb_cg"}
    code, _, err = status(*run, "allreduce,npb_xx")
    assert code == 2 and "expected messages, memory, programs, latency" in err
    assert "got npb_xx" in err


def test_windows_of_ranks_that_are_ahead(status: Status, tmp_path: Path) -> None:
    """Without overheads a rank is a window ahead of the other."""
    (tmp_path / "m.yaml").write_text(json.dumps(MACHINE))
    same = ("--platform", "m.yaml", "--cfg", "smpi/wtime:0", "--compute", "none")
    assert status("validate", "script", "--largest", "8B", "--repeats", "1")[0] == 0
    parts = ("validate.py", "v.jsonl", "--only", "bandwidth,bidirectional")
    assert status("run", "-q", "-n", "2", *same, "--map-by", "node", *parts)[0] == 0
    code, out, err = status("validate", "v.jsonl", *same, "--json")
    assert code == 0, err
    errors = [row["error"] for row in json.loads(out)["rows"]]
    assert len(errors) == 6 and max(map(abs, errors)) < 0.1, errors


def test_programs_without_compute_have_no_origin() -> None:
    job = MeasuredJob(("n0",), times={("npb_cg", 0): Times((2.0,))})
    two = MeasuredJob(("n0", "n1"), times={("npb_cg", 0): Times((1.0,))})
    predictions = [
        PredictedJob({("npb_cg", 0): 0.0}, {"npb_cg": 0.0}),
        PredictedJob({("npb_cg", 0): 0.5}, {"npb_cg": 0.5}),
    ]
    (row,) = Validation([job, two], predictions).rows
    assert (row.ranks, row.compute, row.messages) == (2, None, 1.0)
