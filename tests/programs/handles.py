"""Prints facts about handles and the module that do not depend on the machine."""

import inspect
import json
import pydoc

from mpi4py import MPI

comm = MPI.COMM_WORLD


class Wrapper(type(comm)):
    """A communicator that passes its attributes on to another one."""

    def __init__(self):
        self.known_rank = comm.Get_rank()

    def __getattribute__(self, name):
        if name != "bcast" and name in comm.__dir__():
            return getattr(comm, name)
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        if name in comm.__dir__():
            setattr(comm, name, value)
        else:
            super().__setattr__(name, value)

    def bcast(self, obj, root=0):
        return "wrapped", comm.bcast(obj, root)


wrapper = Wrapper()
facts = {
    "rank and size": (wrapper.known_rank, wrapper.Get_size(), comm.Get_size()),
    "overridden": wrapper.bcast(comm.rank),
    "attributes": list(wrapper.__dict__),
}

first, second = comm.Get_group(), comm.Get_group()
duplicate, half = comm.Dup(), comm.Split(comm.rank % 2)
across = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
window = MPI.Win.Create(None, 1, comm=comm)
facts["groups"] = [
    first == second,
    first is second,
    comm.group == duplicate.group,
    half.group == half.group,
    half.group == comm.group,
    across.group == across.group,
    across.remote_group == across.remote_group,
    across.group == across.remote_group,
    window.group == comm.group,
    first == MPI.Group.Incl(first, range(first.size)),
    MPI.Group.Union(first, second) == first,
    MPI.COMM_SELF.group == MPI.COMM_SELF.Get_group(),
]
first.Free()
facts["after a free"] = [bool(first), first == second, second.size, comm.Get_group() == second]
window.Free()

facts["module"] = [
    MPI.__name__,
    MPI.__package__,
    MPI.__spec__.name,
    repr(MPI).split(" from ")[0].split(" (")[0],
    inspect.getmodule(MPI.Alloc_mem) is MPI,
    pydoc.render_doc(comm.Split).splitlines()[0],
]

for line in comm.gather(json.dumps(facts, indent=1)) or ():
    print(line)
