"""Every callable of mpi4py.MPI with every argument replaced by a wrong one.

    all_refusals.py OUTCOMES.jsonl [START]

The calls are made from mpi4py's own type stubs, on one process. A line of JSON tells that a call
begins, a second one that it has ended: the type of the exception and its message. START is the
number of the first call, for an MPI that has to be started again after calls that it does not
survive.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI

FOLDER = tempfile.mkdtemp()
fresh = itertools.count()

WRONG = ("None", "'x'", "2.5", "-9", "object()", "[None]", "angry", "liar")
ARRAYS = ("times", "spans", "objects", "strings", "texts", "records")
WRONG_BUFFERS = (
    "odd_device",
    "odd_dlpack",
    "angry_device",
    "[times, 4]",
    "[strings, None, 'x']",
    "[records, (4, None)]",
    "[texts, 4, 0]",
    "{}",
    "[angry, 1, MPI.INT]",
    "[a, angry]",
    "[a, liar]",
    "[a, 1, angry]",
    "[a, ([4], angry), MPI.INT]",
    "[a, ([angry], [0]), MPI.INT]",
    *ARRAYS,
)
TOO_LARGE = "1 << 70"
NULLS = {
    "Datatype": "MPI.DATATYPE_NULL", "Op": "MPI.OP_NULL", "Group": "MPI.GROUP_NULL",
    "Comm": "MPI.COMM_NULL", "Intracomm": "MPI.COMM_NULL", "Request": "MPI.REQUEST_NULL",
    "Errhandler": "MPI.ERRHANDLER_NULL", "Session": "MPI.SESSION_NULL",
}  # fmt: skip

# Objects that calls need; each call gets its own, made at the first use of the name.
THINGS: dict[str, Any] = {
    "a": lambda: np.zeros(4, "i4"),
    "b": lambda: np.zeros(4, "i4"),
    "one": lambda: np.zeros(1, "i4"),
    "two": lambda: np.zeros(1, "i4"),
    "three": lambda: np.zeros(1, "i4"),
    "blocks": lambda: [np.zeros(4, "i4"), ([4], [0]), [MPI.INT]],
    "more": lambda: [np.zeros(4, "i4"), ([4], [0]), [MPI.INT]],
    "comm": lambda: MPI.COMM_SELF.Dup(),
    "inter": lambda: MPI.Intercomm(),
    "cart": lambda: MPI.COMM_SELF.Create_cart([1], [True]),
    "graph": lambda: MPI.COMM_SELF.Create_graph([1], [0]),
    "ring": lambda: MPI.COMM_SELF.Create_dist_graph_adjacent([0], [0]),
    "group": lambda: MPI.COMM_SELF.Get_group(),
    "info": lambda: MPI.Info.Create(),
    "win": lambda: MPI.Win.Allocate(64, 1),
    "locked": lambda: locked(),
    "dynamic": lambda: MPI.Win.Create_dynamic(),
    "file": lambda: MPI.File.Open(
        MPI.COMM_SELF, os.path.join(FOLDER, f"f{next(fresh)}"), MPI.MODE_RDWR | MPI.MODE_CREATE
    ),
    "path": lambda: os.path.join(FOLDER, f"p{next(fresh)}"),
    "name": lambda: f"name{next(fresh)}",
    "status": lambda: MPI.Status(),
    "request": lambda: MPI.Request(),
    "persistent": lambda: MPI.COMM_SELF.Send_init(np.zeros(4, "i4"), MPI.PROC_NULL),
    "partitioned": lambda: MPI.COMM_SELF.Psend_init(np.zeros(4, "i4"), 2, 0),
    "generalized": lambda: MPI.Grequest.Start(),
    "message": lambda: MPI.Message.Probe(MPI.COMM_SELF, MPI.PROC_NULL),
    "derived": lambda: MPI.INT.Create_vector(2, 1, 2).Commit(),
    "own_op": lambda: MPI.Op.Create(lambda x, y, t: None),
    "errhandler": lambda: MPI.Comm.Create_errhandler(lambda comm, code: None),
    "session": lambda: MPI.Session.Init(),
    "keyval": lambda: MPI.Comm.Create_keyval(),
    "type_keyval": lambda: MPI.Datatype.Create_keyval(),
    "win_keyval": lambda: MPI.Win.Create_keyval(),
    "errorclass": lambda: MPI.Add_error_class(),
    "memory": lambda: MPI.Alloc_mem(8),
    "buffer": lambda: MPI.buffer.allocate(8),
    "function": lambda: lambda *args: None,
    "angry": lambda: Angry(),
    "liar": lambda: Liar(),
    "times": lambda: np.zeros(4, "M8[s]"),
    "spans": lambda: np.zeros(4, "m8[s]"),
    "objects": lambda: np.zeros(4, "O"),
    "strings": lambda: np.zeros(4, "S3"),
    "texts": lambda: np.zeros(4, "U2"),
    "records": lambda: np.zeros(4, "i4,f8"),
    "odd_device": lambda: Exporter(__cuda_array_interface__={"data": None}),
    "odd_dlpack": lambda: Exporter(__dlpack__=lambda **kw: 3, __dlpack_device__=lambda: (1, 0)),
    "angry_device": lambda: Exporter(__cuda_array_interface__=Angry()),
}


class Mischief(Exception):
    """The exception of the program's objects."""


def _raise(*args: Any, **kwargs: Any) -> Any:
    raise Mischief("on purpose")


class Exporter:
    """An object with some attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


SPECIAL = (
    "__index__", "__int__", "__float__", "__len__", "__iter__", "__getitem__", "__bool__",
    "__fspath__", "__contains__", "__call__", "__reduce_ex__", "keys", "items", "__next__",
)  # fmt: skip


class Angry:
    """Each special method raises."""

    __hash__ = object.__hash__


class Liar:
    """Each special method returns an object of a wrong type, or a wrong value."""

    __hash__ = object.__hash__
    __len__ = lambda self: -1  # noqa: E731


for _name in SPECIAL:
    setattr(Angry, _name, _raise)
    if _name != "__len__":
        setattr(Liar, _name, lambda *args, **kwargs: {})


def locked() -> MPI.Win:
    win = MPI.Win.Allocate(64, 1)
    win.Lock(0)
    return win


# The object of a method call, by class or by method.
OBJECTS = {
    "Datatype": "MPI.INT", "Status": "status", "Request": "request", "Prequest": "persistent",
    "Prequest.Pready": "partitioned", "Prequest.Pready_range": "partitioned",
    "Prequest.Pready_list": "partitioned", "Prequest.Parrived": "partitioned",
    "Grequest": "generalized", "Message": "message", "Op": "MPI.SUM", "Group": "group",
    "Info": "info", "Errhandler": "errhandler", "Session": "session", "Comm": "comm",
    "Intracomm": "comm", "Topocomm": "ring", "Cartcomm": "cart", "Graphcomm": "graph",
    "Distgraphcomm": "ring", "Intercomm": "inter", "Win": "locked", "Win.Start": "win",
    "Win.Post": "win", "Win.Lock": "win", "Win.Lock_all": "win", "Win.Fence": "win",
    "Win.Attach": "dynamic", "Win.Detach": "dynamic", "File": "file", "buffer": "buffer",
    "Pickle": "MPI.pickle", "Exception": "MPI.Exception(1)",
}  # fmt: skip

# Right values of a parameter: by method, or by name and perhaps annotation.
RIGHT = {
    "buf": "a", "sendbuf": "a", "recvbuf": "b", "inbuf": "a", "outbuf": "b", "inoutbuf": "b",
    "info": "MPI.INFO_NULL", "status": "status", "tag": "0", "sendtag": "0", "recvtag": "0",
    "root": "0", "source": "MPI.PROC_NULL", "dest": "MPI.PROC_NULL", "op": "MPI.SUM", "arg": "0",
    "requests": "[request]", "offset": "0", "keyval": "keyval", "statuses": "[status]",
    "handle": "0", "comm": "comm", "obj": "1", "errorcode": "0", "origin": "one",
    "target_rank": "0", "rank": "0", "datatype": "MPI.INT", "sendobj": "1", "target": "None",
    "size": "8", "Datatype.Create_darray.size": "1",
    "count": "1", "group": "group", "displacements": "[0]", "datarep": "'external32'",
    "key": "0", "key: str": "'a'", "port_name": "'port'", "assertion": "0", "blocklength": "1",
    "position": "0", "group1": "group", "group2": "group", "errhandler": "errhandler",
    "reorder": "False", "result": "two", "compare": "three", "blocklengths": "[1]", "r": "2",
    "p": "3", "attrval": "1", "nopython": "False", "name": "'name'", "pset_name": "'mpi://SELF'",
    "recvcounts": "[4]", "disp": "0", "disp_unit": "1", "service_name": "name", "stride": "1",
    "order": "MPI.ORDER_C", "flag": "True", "flag: int": "1", "flag: Buffer": "one",
    "partition": "0", "ranks": "[0]", "ranks: Sequence[tuple[int, int, int]]": "[(0, 0, 1)]",
    "args": "None", "n": "0", "partitions": "2", "partitions: Sequence[int]": "[0, 1]",
    "stringtag": "'tag'", "dims": "[1]", "periods": "None", "index": "[1]", "edges": "[0]",
    "sources": "[0]", "destinations": "[0]", "degrees": "[1]", "local_leader": "0",
    "remote_leader": "0", "memory": "a", "target_disp": "0", "filename": "path",
    "whence": "MPI.SEEK_SET", "nbytes": "0", "readonly": "False", "data": "b'x'",
    "errorclass": "errorclass", "datatypes": "[MPI.INT]", "sizes": "[4]", "subsizes": "[2]",
    "starts": "[0]", "gsizes": "[4]", "distribs": "[MPI.DISTRIBUTE_BLOCK]",
    "dargs": "[MPI.DISTRIBUTE_DFLT_DARG]", "psizes": "[1]", "value": "'b'",
    "value: Datatype": "MPI.INT", "index: Datatype": "MPI.INT",
    "typeclass": "MPI.TYPECLASS_INTEGER", "lb": "0", "extent": "8", "code": "'i'", "error": "0",
    "partition_low": "0", "partition_high": "0", "query_fn": "None", "free_fn": "None",
    "cancel_fn": "None", "kwargs": "None", "copy_fn": "None", "delete_fn": "None",
    "function": "function", "commute": "False", "session": "session", "items": "{}",
    "default": "None", "errhandler_fn": "function", "color": "0",
    "split_type": "MPI.COMM_TYPE_SHARED", "num_to_ack": "None", "sourceweights": "None",
    "destweights": "None", "weights": "None", "peer_comm": "comm", "coords": "[0]",
    "direction": "0", "remain_dims": "[True]", "local_group": "group", "remote_group": "group",
    "high": "False", "lock_type": "MPI.LOCK_SHARED", "amode": "MPI.MODE_RDONLY",
    "etype": "MPI.BYTE", "filetype": "None", "clear": "False", "address": "0",
    "format": "'B'", "shape": "[8]", "buffers": "[]", "string": "'text'", "location": "a",
    "base": "0", "addr1": "0", "addr2": "0", "nnodes": "1", "read_fn": "None", "write_fn": "None",
    "extent_fn": "function", "mem": "memory", "required": "0", "level": "0",
    "message": "message", "win": "win", "file": "file", "request": "request",
    "Sequence[Any].sendobj": "[1]", "list[Any].sendobj": "[1]",
    "Datatype.Get_value_index.value": "MPI.INT", "Prequest.Startall.requests": "[persistent]",
    "Message.Recv.buf": "a", "File.Set_view.datarep": "'native'", "Info.Create.items": "{}",
    "Register_datarep.datarep": "name", "Status.f2py.arg": "[0] * 5", "buffer.buf": "b''",
    "buffer.frombuffer.obj": "b''", "Fetch_and_op.origin": "one", "Get_address.location": "a",
    "File.Open.amode": "MPI.MODE_RDWR | MPI.MODE_CREATE", "Comm.Create_keyval.copy_fn": "None",
    "Group.Create_from_session_pset.session": "session", "Compute_dims.dims": "[1]",
    "Comm.scatter.sendobj": "[1]", "Comm.alltoall.sendobj": "[1]",
    "Topocomm.neighbor_alltoall.sendobj": "[1]", "Datatype.Free_keyval.keyval": "keyval",
    "Session.Attach_buffer.buf": "bytearray(4096)", "Comm.Attach_buffer.buf": "bytearray(4096)",
    "Attach_buffer.buf": "bytearray(4096)", "fd": "-1",
}  # fmt: skip

KEYVALS = {"Datatype": "type_keyval", "Win": "win_keyval"}
PARTITIONED = ("Comm.Psend_init", "Comm.Precv_init")

# Callables that are not tried, each with its reason.
LEFT_OUT = {
    "Comm.Abort": "ends the program",
    "Init_thread": "MPI is initialized once",
    "Intracomm.Spawn": "starts processes",
    "Intracomm.Spawn_multiple": "starts processes",
}


@dataclass(frozen=True)
class Call:
    """A call with one wrong argument, as an expression."""

    callable: str
    parameter: str
    wrong: str
    expression: str


def right(owner: str, parameter: ast.arg) -> str:
    """A right argument for a parameter of the method or function `owner`."""
    name = parameter.arg
    note = ast.unparse(parameter.annotation) if parameter.annotation else ""
    if "BufSpecW" in note:
        return "blocks" if name == "sendbuf" else "more"
    if name == "keyval" and owner.partition(".")[0] in KEYVALS:
        return KEYVALS[owner.partition(".")[0]]
    for key in (f"{owner}.{name}", f"{name}: {note}", name):
        if key in RIGHT:
            return RIGHT[key]
    raise LookupError(f"no argument is known for {owner}({name}: {note})")


def wrongs(owner: str, parameter: ast.arg) -> Iterator[str]:
    """Wrong arguments for a parameter of the method or function `owner`."""
    yield from WRONG
    note = ast.unparse(parameter.annotation) if parameter.annotation else ""
    if note == "int":
        yield TOO_LARGE
    if note.startswith(("BufSpec", "Buffer")):
        # Calls without a datatype take the bytes of any array.
        plain = note.startswith(("Buffer", "BufSpecW")) or "ack" in owner
        yield from (wrong for wrong in WRONG_BUFFERS if not plain or wrong not in ARRAYS)
    for kind in note.split(" | "):
        if kind in NULLS:
            yield NULLS[kind]


def of_function(owner: str, head: str, function: ast.FunctionDef, bound: bool) -> Iterator[Call]:
    """The calls of a function or method: `head` is the expression that is called."""
    if owner in LEFT_OUT:
        return
    parameters = [*function.args.posonlyargs, *function.args.args][bound:]
    required = len(parameters) - len(function.args.defaults)
    # Without a source the call would wait for a message.
    names = [parameter.arg for parameter in parameters]
    if "source" in names:
        required = max(required, names.index("source") + 1)
    for place, parameter in enumerate(parameters):
        # Messages to itself: with PROC_NULL a buffer is not even read.
        to_self = parameter.arg.endswith("buf") or owner in PARTITIONED
        for wrong in wrongs(owner, parameter):
            arguments = []
            for i, other in enumerate(parameters[: max(required, place + 1)]):
                good = right(owner, other)
                if to_self and good == "MPI.PROC_NULL":
                    good = "0"
                arguments.append(wrong if i == place else good)
            yield Call(owner, parameter.arg, wrong, f"{head}({', '.join(arguments)})")


def calls() -> list[Call]:
    """All calls, in the order of the stubs."""
    stub = ast.parse(Path(mpi4py.__file__).with_name("MPI.pyi").read_text())
    made: list[Call] = []
    for node in stub.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            made += of_function(node.name, f"MPI.{node.name}", node, False)
        if not isinstance(node, ast.ClassDef):
            continue
        for item in node.body:
            if not isinstance(item, ast.FunctionDef):
                continue
            owner = f"{node.name}.{item.name}"
            marks = {ast.unparse(mark) for mark in item.decorator_list}
            if item.name == "__new__":
                made += of_function(node.name, f"MPI.{node.name}", item, True)
            elif item.name.startswith("_") or "overload" in marks:
                continue
            elif marks & {"classmethod", "staticmethod"}:
                bound = "classmethod" in marks
                made += of_function(owner, f"MPI.{owner}", item, bound)
            else:
                thing = OBJECTS.get(owner) or OBJECTS[node.name]
                made += of_function(owner, f"{thing}.{item.name}", item, True)
    return made


class Things(dict[str, Any]):
    """The names in an expression."""

    def __missing__(self, name: str) -> Any:
        if name == "MPI":
            return MPI
        made = self[name] = THINGS[name]()
        return made

    def close(self) -> None:
        """Free everything, as far as calls have left it usable."""
        for thing in reversed(self.values()):
            close(thing)


def close(thing: Any) -> None:
    try:
        if isinstance(thing, MPI.Win) and thing:
            thing.Unlock(0)
    except Exception:
        pass
    try:
        if isinstance(thing, (list, tuple)):
            for item in thing:
                close(item)
        elif hasattr(thing, "free"):
            thing.free()
    except Exception:
        pass


def outcome(call: Call) -> tuple[str, str]:
    """(type of exception, message), or ("", "") if there was none."""
    things = Things()
    result = None
    try:
        result = eval(call.expression, {"object": object, "bytearray": bytearray}, things)
        return "", ""
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        close(result)
        things.close()
        if call.callable == "Attach_buffer":
            MPI.Detach_buffer()


if __name__ == "__main__":
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    skipped = set(json.loads(os.environ.get("SKIPPED_CALLS", "[]")))
    with open(sys.argv[1], "a") as stream:
        for number, call in enumerate(calls()):
            if number < start or call.expression in skipped:
                continue
            stream.write(json.dumps([number, call.expression]) + "\n")
            stream.flush()
            kind, text = outcome(call)
            stream.write(json.dumps([number, kind, text, call.callable, call.parameter]) + "\n")
            stream.flush()
