"""Each function of MPI returns with an error for wrong arguments of compiled programs.

A real library would crash for some of these. Here no call may crash, wait, or end as an exception.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi.header import header
from pysmpi.abi.interfaces import file_of
from pysmpi.abi.table import HANDLES, Argument, functions
from pysmpi.cli.cc import line

SOURCE = Path(__file__).parent / "programs" / "wrong_arguments.c"
# They start or end something, have callbacks or texts, or wait for a message.
LEFT_OUT = re.compile(
    r"Init|Finalize|Abort|[sS]pawn|accept|connect|join|Session|session|T_|Open_port|Close_port|publish"
    r"|Lookup|attach|detach|flush_buffer|Status_|errhandler|Errhandler_|_error|Error_|File_open"
    r"|File_delete|Grequest|Get_processor|Get_version|Get_library|_mem$|ddress|Aint|keyval|get_parent"
    r"|hw_resource|Register|Op_create|Abi_|_name$|_free$|_fromint|_toint|_f2c|_c2f|disconnect|File_close|Mprobe"
    r"|^Probe|Pcontrol"
)
VALID = {
    "Comm": "MPI_COMM_SELF", "Datatype": "MPI_INT", "Op": "MPI_SUM", "Group": "MPI_GROUP_EMPTY",
}  # fmt: skip
# The rank of this process is 0, and no other exists.
RANKS = {"root", "dest", "source", "rank", "tag", "sendtag", "recvtag", "target_rank"}
# Forms of a call: null handles, null but for communicators, negative numbers, NULL as the memory of
# elements, null communicators alone, and NULL as each other address.
FORMS = (
    "null", "null but communicators", "negative", "no memory", "null communicator", "no addresses"
)  # fmt: skip


def _null(kind: str) -> str:
    return f"MPI_{kind.upper()}_NULL"


def _value(argument: Argument, form: str) -> str:
    kind = argument.type
    if argument.pointer:
        if kind == "void" and argument.stars == "*" and argument.name != "baseptr":
            return "NULL" if form == "no memory" else "memory"
        if form == "no addresses":
            return "(void *)0"
        if kind in HANDLES and (argument.constant or argument.brackets):
            return f"(void *)(MPI_{kind}[4]){{{', '.join(4 * [VALID.get(kind, _null(kind))])}}}"
        return "(void *)results"
    if kind in HANDLES:
        is_comm = kind == "Comm"
        valid = {
            "null": False, "null but communicators": is_comm, "null communicator": not is_comm,
        }  # fmt: skip
        return VALID.get(kind, _null(kind)) if valid.get(form, True) else _null(kind)
    if form == "negative":
        return "-1"
    if form in ("no memory", "no addresses"):
        return "0" if argument.name in RANKS else "1"
    return "1" if form == "null communicator" and "count" in argument.name else "0"


def calls() -> Iterator[tuple[str, str, bool]]:
    """The name of a call, its text, and whether it must be an error."""
    declared = set(re.findall(r"MPI_(\w+)\(", header("mpich")))
    for function in functions():
        if function.name not in declared or LEFT_OUT.search(function.name):
            continue
        if function.result != "int" or any(
            each.type == "..." or each.type.endswith("function") for each in function.arguments
        ):
            continue
        kinds = {each.type for each in function.arguments if not each.pointer}
        results = any(
            each.pointer and (each.type, each.stars) != ("void", "*") and each.type != "Status"
            for each in function.arguments
        )
        for form in FORMS[: None if results else -1]:
            values = ", ".join(_value(each, form) for each in function.arguments)
            wrong = form == "null" and bool(kinds & {"Comm", "Win", "File", "Group"})
            wrong |= form == "null communicator" and "Comm" in kinds
            yield f"{function.name}, {form}", f"MPI_{function.name}({values})", wrong


@pytest.mark.skipif(
    shutil.which("cc") is None or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler",
)
def test_no_argument_ends_a_program_without_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    every = list(calls())
    text = "".join(f'CALL("{name}", {call})\n' for name, call, _ in every)
    (tmp_path / "calls.h").write_text(text)
    target = tmp_path / "wrong"
    subprocess.run(line("cc", ["-w", f"-I{tmp_path}", str(SOURCE), "-o", str(target)]), check=True)
    pysmpi.run(str(target), nprocs=1, check=(), compute="none")
    found = dict(each.rsplit(": ", 1) for each in capfd.readouterr().out.splitlines())
    assert set(found) == {name for name, _, _ in every}
    assert len(found) > 1000
    accepted = [name for name, _, wrong in every if wrong and found[name] == "success"]
    assert not accepted
    for name in ("Group_incl", "Cart_create", "Send", "Allreduce", "Type_vector"):
        assert found[f"{name}, negative"] == "error", name
    for name in ("Send", "Irecv", "Allgather", "Reduce", "Pack"):
        assert found[f"{name}, no memory"] == "error", name
