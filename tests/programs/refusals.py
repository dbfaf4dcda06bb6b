"""The exceptions of calls with wrong arguments: `refusals.py RESULTS.json` writes exception types.

Left out are arguments that MPICH does not check (a negative colour or dimension), or whose error is
a missing attribute inside mpi4py (`Op.Create` of an object that is no function).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import numpy as np
from mpi4py import MPI

c, null, info = MPI.COMM_SELF, MPI.COMM_NULL, MPI.INFO_NULL
a, b = np.zeros(4, "i4"), np.zeros(4, "i4")
strided, frozen = np.zeros((4, 4))[:, 1], np.zeros(4)
frozen.flags.writeable = False
group, integer = c.Get_group(), MPI.INT
own_info = MPI.Info.Create()
window = MPI.Win.Allocate(64, 1)
path = os.path.join(tempfile.mkdtemp(), "file")
file = MPI.File.Open(c, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
for thing in (c, window, file):
    thing.Set_errhandler(MPI.ERRORS_RETURN)

# Templates with a wrong value in the place of {}.
WRONG = {
    "'x'": (
        "c.Send(a, {})", "c.Isend(a, 0, {})", "c.Recv(a, {})", "c.Recv(a, 0, {})",
        "c.send(1, {})", "c.recv(None, {})", "c.isend(1, {})", "c.irecv(None, {})",
        "c.sendrecv(1, {})", "c.Sendrecv(a, {})", "c.Probe({})", "c.Iprobe({})", "c.Mprobe({})",
        "c.Bcast(a, {})", "c.bcast(1, {})", "c.Gather(a, b, {})", "c.gather(1, {})",
        "c.Scatter(a, b, {})", "c.scatter([1], {})", "c.Reduce(a, b, {})", "c.Allreduce(a, b, {})",
        "c.Reduce(a, b, MPI.SUM, {})", "c.Scan(a, b, {})", "c.Exscan(a, b, {})",
        "c.Reduce_scatter(a, b, {})", "c.Reduce_scatter(a, b, None, {})",
        "c.Reduce_scatter_block(a, b, {})", "c.Split({})", "c.Split(0, {})", "c.Create({})",
        "c.Create_group({})", "c.Create_group(group, {})", "c.Create_cart({})", "c.Dup({})",
        "c.Create_cart([1], {})", "c.Split_type({})", "c.Create_graph({}, [0])",
        "c.Create_dist_graph_adjacent({}, [0])", "c.Set_attr({}, 1)", "c.Get_attr({})",
        "c.Delete_attr({})", "c.Set_errhandler({})", "c.Set_info({})", "c.Call_errhandler({})",
        "c.Abort.__call__({}, 1)", "MPI.Comm.Compare(c, {})", "c.Create_intercomm(0, {}, 0)",
        "MPI.Comm.Create_keyval(nopython={}, copy_fn=3)", "MPI.Comm.Free_keyval({})",
        "group.Incl({})", "group.Excl({})", "group.Range_incl({})", "group.Translate_ranks({})",
        "MPI.Group.Union(group, {})", "MPI.Group.Compare(group, {})",
        "integer.Create_vector({}, 1, 1)", "integer.Create_contiguous({})",
        "integer.Create_indexed({}, [0])", "integer.Create_indexed([1], {})",
        "integer.Create_hvector(1, 1, {})", "integer.Create_resized({}, 1)",
        "integer.Create_subarray({}, [1], [0])", "MPI.Datatype.Create_struct([1], [0], {})",
        "integer.Create_darray(1, 0, [1], {}, [0], [1])", "integer.Pack_size({}, c)",
        "integer.Pack_size(1, {})", "integer.Pack(a, {}, 0, c)", "integer.Pack(a, b, {}, c)",
        "integer.Pack(a, b, 0, {})", "integer.Unpack(a, 0, {}, c)", "MPI.Datatype.fromcode({})",
        "MPI.Datatype.Match_size({}, 4)", "MPI.Datatype.Create_f90_integer({})",
        "MPI.SUM.Reduce_local({}, b)", "MPI.SUM.Reduce_local(a, {})",
        "MPI.Request.Waitall({})", "MPI.Request.Waitany({})", "MPI.Request.Testall({})",
        "MPI.Request.Waitsome({})", "MPI.Request.Testany({})", "MPI.Prequest.Startall({})",
        "MPI.REQUEST_NULL.Wait({})", "MPI.REQUEST_NULL.Test({})", "MPI.Request.waitall({})",
        "MPI.Win.Create({}, 1)", "MPI.Win.Create(a, {})", "MPI.Win.Allocate({})",
        "MPI.Win.Create(a, 1, {})", "MPI.Win.Create(a, 1, info, {})", "window.Put(a, {})",
        "window.Get(a, {})", "window.Put(a, 0, {})", "window.Accumulate(a, 0, None, {})",
        "window.Fence({})", "window.Lock({})", "window.Lock(0, {})", "window.Flush({})",
        "window.Start({})", "window.Post({})", "window.Get_attr({})", "window.Attach({})",
        "window.Fetch_and_op(a, b, {})", "window.Compare_and_swap(a, b, {}, 0)",
        "MPI.File.Open({}, path)", "MPI.File.Open(c, path, {})", "MPI.File.Open(c, path, 2, {})",
        "file.Seek({})", "file.Seek(0, {})", "file.Set_size({})", "file.Preallocate({})",
        "file.Write_at({}, a)", "file.Read_at({}, a)", "file.Set_view({})",
        "file.Set_view(0, {})", "file.Set_atomicity({})", "file.Write_at(0, {})",
        "file.Set_info({})", "file.Get_byte_offset({})", "MPI.File.Delete(path + 'x', {})",
        "MPI.Info.Create({})", "own_info.Set({})", "own_info.Get_nthkey({})", "own_info['no']",
        "own_info.pop('no')", "MPI.Info.Delete(own_info, {})", "MPI.Compute_dims({}, 1)",
        "MPI.Compute_dims(1, {})", "MPI.Status({})", "MPI.Status().Set_source({})",
        "MPI.Status().Get_count({})", "MPI.Status().Set_elements({}, 1)", "MPI.Get_error_class({})",
        "MPI.Add_error_code({})", "MPI.Add_error_string({}, 'a')", "MPI.Attach_buffer(3)",
        "MPI.Alloc_mem({})", "MPI.Get_address(3)",
    ),
    "None": (
        "c.Send(a, {})", "c.Send({}, 0)", "c.Recv({}, 0)", "c.Bcast({})", "c.Allreduce({}, b)",
        "c.Allreduce(a, {})", "c.Split({})", "c.Create({})", "c.Create_cart({})", "c.scatter({})",
        "c.alltoall({})", "c.Set_errhandler({})", "group.Incl({})",
        "integer.Create_vector({}, 1, 1)", "MPI.Request.Waitall({})",
        "file.Write_at({}, a)",
        "window.Put(a, {})",
        "own_info.Set('a', {})", "MPI.File.Open(c, {})", "MPI.Compute_dims({}, [0])",
    ),
    "2.5": (
        "c.bcast(1, {})", "c.Split({})", "c.Create_cart([{}])", "group.Incl([{}])",
        "integer.Create_indexed([{}], [0])", "MPI.Get_error_class({})",
        "integer.Create_vector({}, 1, 1)", "c.Bcast([a, {}, integer])", "file.Seek({})",
        "MPI.Win.Allocate({})",
        "c.Send(a, {}, 0)",
        "integer.Create_resized({}, 8)", "integer.Create_contiguous({})", "own_info.Get_nthkey({})",
    ),
    "-9": (
        "c.Send(a, {})", "c.Recv(a, {})", "c.Isend(a, 0, {})", "c.Bcast(a, {})", "c.bcast(1, {})",
        "c.Gather(a, b, {})", "c.Send([a, {}, integer], 0)", "group.Incl([{}])",
        "integer.Create_vector({}, 1, 1)", "integer.Create_contiguous({})",
        "MPI.Alloc_mem({})", "file.Set_size({})", "window.Put(a, {})", "window.Lock({})",
        "MPI.Compute_dims({}, 1)", "MPI.Compute_dims(1, [{}])", "c.Get_attr({})",
    ),
    "1 << 40": ("c.Send(a, {})", "c.bcast(1, {})", "c.Split({})", "group.Incl([{}])"),
    "strided": ("c.Send({}, 0)", "c.Bcast({})", "c.Allreduce({}, b)", "MPI.Win.Create({})"),
    "frozen": ("c.Recv({}, 0)", "c.Irecv({}, 0)", "c.Allreduce(a, {})", "file.Read_at(0, {})"),
    "null": (
        "{}.Get_rank()", "{}.Get_size()", "{}.Barrier()", "{}.Send(a, 0)", "{}.send(1, 0)",
        "{}.Dup()", "{}.Split()", "{}.Free()", "{}.Get_group()", "MPI.Comm.Compare(c, {})",
        "MPI.File.Open({}, path)", "MPI.Win.Allocate(8, 1, info, {})",
    ),
    "[a, 'nonsense']": ("c.Send({}, 0)", "c.Bcast({})", "c.Allreduce({}, b)"),
    "[a, 1, 2, 3, 4, 5]": ("c.Send({}, 0)", "c.Bcast({})", "c.Alltoallv({}, b)"),
    "MPI.DATATYPE_NULL": ("c.Send([a, 1, {}], 0)", "{}.Get_size()", "{}.Commit()", "{}.Dup()"),
    "MPI.OP_NULL": ("c.Allreduce(a, b, {})", "{}.Free()", "{}.Is_commutative()", "{}(1, 2)"),
}  # fmt: skip


def outcome(expression: str) -> str:
    try:
        eval(expression)
    except Exception as error:
        # The message is not compared, but there must be one.
        return type(error).__name__ if str(error) else f"{type(error).__name__} with no message"
    return "no exception"


if __name__ == "__main__":
    found = {}
    for wrong, templates in WRONG.items():
        for template in templates:
            expression = template.replace("{}", wrong)
            if "-v" in sys.argv:
                print(expression, flush=True)
            found[expression] = outcome(expression)
    with open(sys.argv[1], "w") as stream:
        json.dump(found, stream)
