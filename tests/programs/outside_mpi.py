"""Every callable of mpi4py.MPI before MPI is initialized, or after it is finalized.

    outside_mpi.py before|after OUTCOMES.json

The outcome is `ended` where MPI refuses the call or ends the process, else `done`. Each call is
made in a child process of its own, except under pysmpi, which raises exceptions.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path

import mpi4py

mpi4py.rc.finalize = False
if sys.argv[1] == "before":
    mpi4py.rc.initialize = False

from mpi4py import MPI  # noqa: E402

SIMULATED = "pysmpi" in MPI.Get_library_version()
if sys.argv[1] == "after":
    MPI.Finalize()

import all_refusals  # noqa: E402

#: Objects that exist without MPI, in place of those that calls would have.
OBJECTS = {
    "comm": "MPI.COMM_SELF", "inter": "MPI.Intercomm()", "cart": "MPI.Cartcomm(MPI.COMM_SELF)",
    "graph": "MPI.Graphcomm(MPI.COMM_SELF)", "ring": "MPI.Distgraphcomm(MPI.COMM_SELF)",
    "group": "MPI.GROUP_EMPTY", "info": "MPI.INFO_NULL", "win": "MPI.WIN_NULL",
    "locked": "MPI.WIN_NULL", "dynamic": "MPI.WIN_NULL", "file": "MPI.FILE_NULL",
    "request": "MPI.REQUEST_NULL", "persistent": "MPI.Prequest()", "partitioned": "MPI.Prequest()",
    "generalized": "MPI.Grequest()", "message": "MPI.MESSAGE_NO_PROC", "derived": "MPI.INT",
    "own_op": "MPI.SUM", "errhandler": "MPI.ERRORS_RETURN", "session": "MPI.SESSION_NULL",
    "keyval": "3", "type_keyval": "3", "win_keyval": "3", "errorclass": "3",
    "memory": "MPI.buffer.allocate(8)",
}  # fmt: skip
LEFT_OUT = {
    "Init": "initializes",
    "Init_thread": "initializes",
    "Finalize": "ends MPI",
    "Session.Init": "initializes",
    "Comm.Abort": "ends the process",
}


class Names(dict):
    def __missing__(self, name):
        if name == "MPI":
            return MPI
        if name in OBJECTS:
            return eval(OBJECTS[name], {"MPI": MPI})
        return all_refusals.THINGS[name]()


def right_call(owner, head, function, bound):
    parameters = [*function.args.posonlyargs, *function.args.args][bound:]
    required = len(parameters) - len(function.args.defaults)
    names = [parameter.arg for parameter in parameters]
    if "source" in names:
        required = max(required, names.index("source") + 1)
    more = {"command": "['true']" if "multiple" in owner else "'true'"}
    arguments = [
        more.get(one.arg) or all_refusals.right(owner, one) for one in parameters[:required]
    ]
    return owner, f"{head}({', '.join(arguments)})"


def calls():
    stub = ast.parse(Path(mpi4py.__file__).with_name("MPI.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield right_call(node.name, f"MPI.{node.name}", node, False)
        if not isinstance(node, ast.ClassDef):
            continue
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
                owner = f"{node.name}.{ast.unparse(item.target)}"
                thing = all_refusals.OBJECTS.get(node.name)
                if thing:
                    yield owner, f"{thing}.{ast.unparse(item.target)}"
            if not isinstance(item, ast.FunctionDef) or item.name.startswith("_"):
                continue
            owner = f"{node.name}.{item.name}"
            marks = {ast.unparse(mark) for mark in item.decorator_list}
            thing = all_refusals.OBJECTS.get(owner) or all_refusals.OBJECTS.get(node.name)
            if "overload" in marks or any(mark.endswith(".setter") for mark in marks):
                continue
            if "property" in marks:
                if thing:
                    yield owner, f"{thing}.{item.name}"
            elif marks & {"classmethod", "staticmethod"}:
                head = f"MPI.{owner}"
                yield right_call(owner, head, item, "classmethod" in marks)
            elif thing:
                yield right_call(owner, f"{thing}.{item.name}", item, True)


def refused(expression):
    """Whether MPI refuses a call for its time."""
    try:
        eval(expression, {"object": object, "bytearray": bytearray, "print": print}, Names())
    except MPI.Exception as error:
        return "before MPI was" in str(error) or "after MPI was" in str(error)
    except Exception:
        return False
    return False


def survives(expression):
    """Whether a process survives a call."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        refused(expression)
        os.write(writer, b"x")
        os._exit(0)
    os.close(writer)
    found = os.read(reader, 1)
    os.close(reader)
    os.waitpid(child, 0)
    return bool(found)


outcomes = {}
for owner, expression in calls():
    if owner not in LEFT_OUT:
        ended = refused(expression) if SIMULATED else not survives(expression)
        outcomes[f"{owner}: {expression}"] = "ended" if ended else "done"
with open(sys.argv[2], "w") as stream:
    json.dump(outcomes, stream)
os._exit(0)
