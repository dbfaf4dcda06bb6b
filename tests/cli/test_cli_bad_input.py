"""Bad input, as a new user gives it: one clear message, the right status, no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full"><host id="a" spe"""

FILES = {
    "ok.py": "pass\n",
    "cut.xml": XML,
    "key.yaml": "name: x\nhosts:\n- {name: a, speed: 1Gf, colour: red}\n",
    "unit.yaml": "name: x\nhosts:\n- {name: a, speed: 1}\n",
    "machines": "cluster-n0:2\ncluster-n1\n",
    "strangers": "elsewhere\n",
    "empty": "",
    "start.sh": "#!/bin/sh\nexec python ok.py\n",
}

# (arguments after `run`, text of the message)
WRONG = [
    (["nope.py"], "nope.py: expected a Python program, got no such file"),
    (["true"], "true: expected a Python program, got"),
    (["start.sh"], "start.sh: expected a Python program, got a script of /bin/sh"),
    (["-n", "0", "ok.py"], "-n: expected at least 1 rank, got 0"),
    (["-n", "-3", "ok.py"], "-n: expected at least 1 rank, got -3"),
    (["-n", "9999999999", "ok.py"], "-n: expected at most 10,000,000 ranks, got 9999999999"),
    (["-n", "many", "ok.py"], "-n: expected a whole number of ranks, got 'many'"),
    ([], "expected a program"),
    ([""], "expected a program"),
    (["python"], "python: expected a program after it"),
    (["-m"], "-m: expected a module after it"),
    (["-c"], "-c: expected a program after it"),
    (["-m", "no.such.module"], "no module 'no'"),
    (["--bogus", "ok.py"], "No such option '--bogus'"),
    (["-host", "n0", "ok.py"], 'there is no host "n0" among 64'),
    (["-platfrom", "x", "ok.py"], "-platfrom: no such option; did you mean --platform?"),
    (["-quick", "ok.py"], "-quick: no such option"),
    (["--selector", "ompi6", "ok.py"], "selector ompi6: no such selector; did you mean ompi"),
    (["--coll", "bcst=binomial_tree", "ok.py"], "collective operation; did you mean bcast?"),
    (["--coll", "bcast=binomial_tre", "ok.py"], "algorithm of bcast; did you mean binomial_tree?"),
    (["--platform"], "requires an argument"),
    (["--platform", "atlantis", "ok.py"], 'got "atlantis"'),
    (["--platform", "nope.xml", "ok.py"], "nope.xml: expected a platform file"),
    (["--platform", "cut.xml", "ok.py"], "cut.xml:3"),
    (["--platform", "key.yaml", "ok.py"], "key.yaml:3: hosts[0].colour: expected a key among"),
    (["--platform", "unit.yaml", "ok.py"], "unit.yaml:3: hosts[0].speed: expected a speed with"),
    (["-n", "4", "--hostfile", "machines", "ok.py"], "machines: expected room for 4 ranks, got 3"),
    (["--hostfile", "strangers", "ok.py"], "strangers:1"),
    (["--hostfile", "empty", "ok.py"], "empty: expected at least one host, got none"),
    (["--hostfile", "nope", "ok.py"], "nope: cannot be read"),
    (["--map-by", "moon", "ok.py"], "--map-by: expected core, socket, node, ppr:N:node or"),
    (["--model", "newton", "ok.py"], "--model newton: no such model"),
    (["--selector", "best", "ok.py"], "selector best: no such selector"),
    (["--coll", "bcast", "ok.py"], "--coll bcast: expected NAME=VALUE"),
    (["--coll", "bcast=best", "ok.py"], "bcast=best: no such algorithm of bcast"),
    (["--coll", "cast=star", "ok.py"], "collective operation cast: no such"),
    (["--cfg", "smpi/oss:0", "ok.py"], "unknown option 'smpi/oss'; did you mean smpi/os?"),
    (["--cfg", "smpi/os", "ok.py"], "--cfg smpi/os: expected NAME:VALUE"),
    (["--cfg", "smpi/os:fast", "ok.py"], "smpi/os: expected"),
    (["--cfg", "smpi/wtime:soon", "ok.py"], "smpi/wtime: expected a number"),
    (["--cfg", "smpi/simulate-computation:maybe", "ok.py"], "expected yes or no, got 'maybe'"),
    (["--compute", "-1", "ok.py"], "--compute -1: expected seconds that are not negative"),
    (["--compute", "nope", "ok.py"], "--compute nope: expected native, steady, none, seconds"),
    (["--compute", "ok.py", "ok.py"], "expected the header of a recording of compute"),
    (["--compute", "none", "--record-compute", "x", "ok.py"], "native or steady compute can be"),
    (["--record-compute", "nowhere/x", "ok.py"], "nowhere/x: cannot record compute there"),
    (["--host-speed", "fast", "ok.py"], "--host-speed: expected a speed"),
    (["--seed", "x", "ok.py"], "--seed: expected a whole number, got 'x'"),
    (["--on-deadlock", "panic", "ok.py"], "--on-deadlock: expected report or raise, got 'panic'"),
    (["--report", "nowhere/r.json", "ok.py"], "--report nowhere/r.json: cannot be written"),
    (["--report", ".", "ok.py"], "--report .: cannot be written: it is a directory"),
    (["--trace", "nowhere/t.json", "ok.py"], "--trace nowhere/t.json: cannot be written"),
    (["--trace", "t.bin", "ok.py"], "--trace t.bin: expected the suffix"),
    (["-x"], "-x: expected the name of a variable after it"),
    (["-genv", "A"], "-genv A: expected a value after it"),
    (["-ppn", "x", "ok.py"], "-ppn: expected at least 1 rank a node, got x"),
]


@pytest.fixture(autouse=True)
def files(write):
    for name, text in FILES.items():
        write(name, text)


@pytest.mark.parametrize("words, message", WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_one_line_and_status_2(status, tmp_path: Path, words, message):
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = status("run", *words)
    assert (code, out) == (2, "")
    assert err.startswith("pysmpi: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_binary_file(status, tmp_path: Path):
    (tmp_path / "data").write_bytes(b"\x7fELF\x00\x01")
    code, _, err = status("run", "data")
    assert code == 2
    assert err.startswith("pysmpi: error: data: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (["walk"], "no such command 'walk'"),
        (["modles"], "did you mean models?"),
        (["ok.py"], "did you mean pysmpi run ok.py?"),
        (["--loud"], "No such option"),
        (["models", "more"], "unexpected extra argument"),
        (["explain", "PSM999"], "no such diagnostic 'PSM999'"),
        (["platform"], "Missing command"),
        (["platform", "show", "nope.yaml"], "nope.yaml: expected a platform file"),
        (["platform", "check", "cut.xml"], "cut.xml:3"),
        (["collectives", "cast"], "collective operation cast: no such"),
        (["collectives", "allreduc"], "did you mean allreduce?"),
        (["collectives", "--selector", "best"], "selector best: no such selector"),
        (["collectives", "--selector", "ompi", "-n", "0"], "expected at least 1"),
        (["collectives", "--bytes", "1 apple"], "expected a size, e.g."),
        (["collectives", "--selector", "ompi", "--bytes", "1 stone"], "expected a size"),
    ],
)
def test_other_commands(status, words, message):
    code, out, err = status(*words)
    assert (code, out) == (2, "")
    assert err.startswith("pysmpi: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_as_processes(pysmpi):
    for words, message in (WRONG[0], WRONG[1], WRONG[16]):
        done = pysmpi("run", *words)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


NOT_PYTHON = ("[", "1 = 2", "def f(:", "x = 9a", "é = '", "\tif")


@pytest.mark.parametrize(
    "command",
    ["run -q", "run -q --check all", "run -q --schedule random", "run -q --explain", "explore",
     "explore --runs 2", "explore --resume"],
)  # fmt: skip
def test_a_program_that_is_not_python(status, write, command):
    """Each command that runs a program shows its error as Python does, and no frame of pysmpi."""
    for source in NOT_PYTHON:
        write("bad.py", source + "\n")
        for program, name in ((["bad.py"], "bad.py"), (["-c", source], "<string>")):
            code, out, err = status(*command.split(), "-n", "2", *program)
            assert code == 1 and not out
            assert re.fullmatch(
                rf'  File ".*{name}", line 1\n(    .*\n)*(Syntax|Indentation)Error: .*\n', err
            ), err


def test_files_that_are_not_there_are_answered_with_similar_ones(status, write) -> None:
    write("lab.yaml", "name: lab\nclusters:\n\t- name: lab\n")
    write("hosts.txt", "cluster-n0\n")
    write("app.py", "")
    for words, hint in [
        (["run", "--platform", "lab", "app.py"], 'did you mean "lab.yaml"?'),
        (["run", "--platform", "lab.yml", "app.py"], "did you mean lab.yaml?"),
        (["platform", "check", "Lab.yaml"], "did you mean lab.yaml?"),
        (["run", "--hostfile", "host.txt", "app.py"], "did you mean hosts.txt?"),
        (["run", "ap.py"], "did you mean app.py?"),
        (["platform", "check", "lab.yaml"], "lab.yaml:3: expected well-formed YAML, got: a tab"),
    ]:
        code, _, err = status(*words)
        assert code == 2 and hint in err, (words, err)


def test_options_behind_the_program_are_noted(status, write) -> None:
    write("app.py", "import sys\nprint(sys.argv[1:])\n")
    code, out, err = status("run", "app.py", "-n", "4")
    assert code == 0 and out == "['-n', '4']\n"
    assert "pysmpi: -n is behind the program, and so an argument of it" in err
    code, _, err = status("run", "-n", "1", "app.py", "-n", "4")
    assert code == 0 and "behind the program" not in err
