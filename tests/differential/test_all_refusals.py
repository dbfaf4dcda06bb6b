"""Every callable refuses wrong arguments as mpi4py on MPICH does, and names the argument."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "all_refusals.py"

#: Calls that MPICH does not survive, or that wait for ever, with the reason.
NOT_UNDER_MPICH = {
    r"comm\.recv\(None, 0\)": "a right call, which waits for a message",
    r"MPI\.Intercomm\.Create_from_groups\(group, (2\.5|-9), .*": "MPICH crashes",
    r"MPI\.Intercomm\.Create_from_groups\(group, 0, group, (2\.5|-9)\)": "MPICH aborts",
    r"MPI\.Intercomm\.Create_from_groups\(group, 0, group, 0, 'x'\)": "MPICH waits for ever",
    r"MPI\.Intercomm\.Create_from_groups\(.*MPI\.INFO_NULL, None\)": "MPICH waits for ever",
    r"MPI\.File\.fromhandle\(2\.5\)": "MPICH crashes",
    r"MPI\.INT\.(Unp|P)ack(_external)?\(.*(-9|2\.5).*\)": "MPICH writes where it should not",
}
#: Calls that MPICH lets pass.
OTHERWISE = {
    r".*\.(fromhandle|fromint|f2py)\((2\.5|-9)\)": "MPICH takes any number for a handle",
    r"MPI\.INT\.Create_darray\(2\.5, .*": "MPICH does not look at the grid",
    r"MPI\.INT\.\w+_external\w*\('x', .*": "MPICH takes any representation for external32",
    r"comm\.Split\(-9\)": "MPICH takes any colour",
    r"MPI\.Add_error_string\((2\.5|0), .*": "MPICH lets programs rename its own errors",
    r"MPI\.Compute_dims\(2\.5, \[1\]\)": "MPICH does not look at dimensions that are all given",
    r"MPI\.Register_datarep\(name, .*": "MPICH has no representations of users",
    r".*(\(liar(, \[status\])?\)|Waitany\(liar, .*)": "not the first wrong method of the object",
    r"comm\.Iagree\(odd_.*": "mpi4py does not look for device memory",
    r"MPI\.buffer\.fromaddress\(angry, 0\)": "Python's own number raises first",
    r"inter\.Merge\((angry|liar)\)": "two arguments are wrong",
}
#: Messages that name another thing than the replaced argument.
NOT_THE_ARGUMENT = {
    r"null comm": "the call is made on a null communicator",
    r"where nothing has begun|that is not started|that does not receive": "the object is idle",
    r"in both groups|in local_group and in remote_group": "right arguments that do not fit",
    r"tag is -1: partitioned communication": "the other one is wrong now",
    r"invalid load key|a bytes-like object is required": "the error is that of module pickle",
    r"File does not exist: ": "the message shows the path",
    r"deadlock": "a right call, which waits for a message",
    r"on purpose|should return|returned (dict|non-string)|must return": "the object's own error",
    r"DLPack only supports|dlpack: |__cuda_array_interface__|typestr": "the exporter's error",
    r"^'x'$": "the key that is not there",
    r"service_name '.*' is not published": "the other one is wrong now",
    r"is not writable": "a right argument that says so",
    r"expecting non-NULL address|make no grid|is not user-defined": "the other one is wrong now",
}


def matches(table: dict[str, str], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in table)


def run(command: list[str], out: Path, skipped: list[str] | None = None) -> dict[str, list[str]]:
    """Outcomes by expression: type of exception, message, callable, parameter."""
    done = subprocess.run(
        [*command, str(PROGRAM), str(out)],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "SKIPPED_CALLS": json.dumps(skipped or [])},
    )  # fmt: skip
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    assert done.returncode == 0, f"{lines[-1:]} {done.stderr[-2000:]}"
    expressions = {line[0]: line[1] for line in lines if len(line) == 2}
    return {expressions[line[0]]: line[1:] for line in lines if len(line) > 2}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    out = tmp_path_factory.mktemp("refusals") / "ours.jsonl"
    simulated = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "1", "--compute", "none"]
    return run([*simulated, "--on-deadlock", "raise"], out)


def test_same_exceptions(ours: dict[str, list[str]], tmp_path: Path) -> None:
    if shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    skipped = [expression for expression in ours if matches(NOT_UNDER_MPICH, expression)]
    real = run(["mpiexec", "-n", "1", sys.executable], tmp_path / "theirs.jsonl", skipped)
    assert len(real) > 5000
    differ = [
        f"{expression}: {ours[expression][:2]}; MPICH {outcome[:2]}"
        for expression, outcome in real.items()
        if ours[expression][0] != outcome[0] and not matches(OTHERWISE, expression)
    ]
    assert not differ, "\n".join(differ)
    # numpy itself refuses these, with its own words.
    for expression, (kind, text, *_) in real.items():
        if kind == "BufferError" and re.search(r"\b(times|spans)\b", expression):
            assert ours[expression][1] == text, expression


def test_no_bug_is_reported(ours: dict[str, list[str]]) -> None:
    """Exceptions of the program's objects are the program's."""
    bugs = [expression for expression, (kind, *_) in ours.items() if "Internal" in kind]
    assert not bugs, "\n".join(bugs)


def test_messages_name_the_argument(ours: dict[str, list[str]]) -> None:
    silent = [
        f"{expression}: {kind}: {text!r} does not name {parameter!r}"
        for expression, (kind, text, _, parameter) in ours.items()
        if kind and parameter not in text
        and not any(re.search(pattern, text) for pattern in NOT_THE_ARGUMENT)
    ]  # fmt: skip
    assert not silent, "\n".join(silent)


def test_every_exception_has_its_reason(ours: dict[str, list[str]]) -> None:
    for table in (NOT_UNDER_MPICH, OTHERWISE):
        for pattern in table:
            assert any(re.fullmatch(pattern, expression) for expression in ours), pattern
