"""Dynamic processes (MPI 4.1, chapter 11): spawned worlds, ports, names, joined sockets.

Whole programs, run by `pysmpi.run`: each rank writes its observations to a file of its own.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

import pysmpi

HEAD = """
import json, os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD

def tell(*seen, name=None):
    name = name or f"rank-{world.rank}"
    with open(os.path.join({folder!r}, name), "w") as out:
        json.dump(seen, out)
"""


class Programs:
    """Writes programs, runs them, and reads their observations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        head = HEAD.replace("{folder!r}", repr(str(self.folder)))
        path.write_text(head + textwrap.dedent(text).replace("FOLDER", repr(str(self.folder))))
        return str(path)

    def run(self, text: str, nprocs: int, **options: Any) -> pysmpi.Result:
        program = self.write("program.py", text)
        return pysmpi.run(program, nprocs, compute="none", **options)

    def told(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def told_by(self, ranks: int) -> list[Any]:
        return [self.told(f"rank-{rank}") for rank in range(ranks)]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_spawned_processes_talk_to_their_parents(programs: Programs) -> None:
    child = programs.write(
        "child.py",
        """
        parent = MPI.Comm.Get_parent()
        got = parent.bcast(None, root=0)
        everybody = parent.Merge(high=True)
        total = everybody.allreduce(1)
        parent.gather((world.rank, world.size, sys.argv[1:]), root=0)
        parent.Disconnect()
        tell(got, total, everybody.rank, bool(MPI.Comm.Get_parent()), name=f"child-{world.rank}")
        """,
    )
    programs.run(
        f"""
        codes = []
        args = [{child!r}, "one", "two words"]
        children = world.Spawn(sys.executable, args, 3, root=1, errcodes=codes)
        root = MPI.ROOT if world.rank == 0 else MPI.PROC_NULL
        children.bcast({{"n": 5}}, root=root)
        total = children.Merge(high=False).allreduce(1)
        seen = children.gather(None, root=root)
        sizes = children.size, children.remote_size
        children.Disconnect()
        tell(sizes, total, seen, codes, children == MPI.COMM_NULL)
        """,
        2,
    )
    answers = [[rank, 3, ["one", "two words"]] for rank in range(3)]
    assert programs.told_by(2) == [
        [[2, 3], 5, answers, [0, 0, 0], True],
        [[2, 3], 5, None, [0, 0, 0], True],
    ]
    for rank in range(3):
        assert programs.told(f"child-{rank}") == [{"n": 5}, 5, 2 + rank, False]


def test_spawn_multiple_makes_one_world_of_several_programs(programs: Programs) -> None:
    text = """
    parent = MPI.Comm.Get_parent()
    parent.gather((NAME, world.rank, world.Get_attr(MPI.APPNUM), sys.argv[1:]), root=0)
    parent.Disconnect()
    """
    paths = [programs.write(f"{name}.py", text.replace("NAME", repr(name))) for name in "ab"]
    programs.run(
        f"""
        codes = []
        children = world.Spawn_multiple(
            [sys.executable] * 2, [[{paths[0]!r}], [{paths[1]!r}, "x"]], [2, 1], errcodes=codes
        )
        seen = children.gather(None, root=MPI.ROOT)
        children.Disconnect()
        tell(seen, codes)
        """,
        1,
    )
    seen, codes = programs.told("rank-0")
    assert seen == [["a", 0, 0, []], ["a", 1, 0, []], ["b", 2, 1, ["x"]]]
    assert codes == [[0, 0], [0]]


def test_a_spawned_world_takes_time_and_has_its_own_clockwork(programs: Programs) -> None:
    child = programs.write(
        "child.py",
        """
        import time
        parent = MPI.Comm.Get_parent()
        time.sleep(2.0)
        parent.send(world.allreduce(1), dest=0)
        parent.Disconnect()
        """,
    )
    result = programs.run(
        f"""
        begin = MPI.Wtime()
        children = world.Spawn(sys.executable, [{child!r}], 4)
        seen = [children.recv(source=i) for i in range(4)]
        tell(seen, MPI.Wtime() - begin >= 2.0)
        children.Disconnect()
        """,
        1,
    )
    assert programs.told("rank-0") == [[4] * 4, True]
    assert result.seconds >= 2.0


def test_a_program_that_is_not_there_cannot_be_spawned(programs: Programs) -> None:
    programs.run(
        """
        try:
            world.Spawn("no-such-program", maxprocs=2)
        except MPI.Exception as error:
            tell(error.Get_error_class() == MPI.ERR_SPAWN, "no-such-program" in str(error))
        """,
        1,
    )
    assert programs.told("rank-0") == [True, True]


def test_an_error_in_a_child_is_an_error_of_the_job(programs: Programs) -> None:
    child = programs.write("child.py", "raise RuntimeError('the child gave up')")
    result = programs.run(
        f"""
        children = world.Spawn(sys.executable, [{child!r}], 1)
        children.recv(source=0)
        """,
        1,
        check=False,
    )
    assert result.exit_status == 1
    assert "the child gave up" in result.error


def test_groups_meet_at_a_port(programs: Programs) -> None:
    programs.run(
        """
        mine = world.Split(world.rank < 2)
        if world.rank < 2:
            port = MPI.Open_port() if mine.rank == 0 else None
            if mine.rank == 0:
                MPI.Publish_name("ocean", port)
                found = MPI.Lookup_name("ocean")
                assert found == port
            world.bcast(port, root=0)
            other = mine.Accept(port, root=0)
        else:
            port = world.bcast(None, root=0)
            other = mine.Connect(MPI.Lookup_name("ocean"), root=0)
        theirs = other.alltoall([world.rank] * other.remote_size)
        other.Disconnect()
        if world.rank == 0:
            MPI.Unpublish_name("ocean", port)
            MPI.Close_port(port)
        world.Barrier()
        try:
            MPI.Lookup_name("ocean")
        except MPI.Exception as error:
            code = error.Get_error_class()
        tell(theirs, code == MPI.ERR_NAME)
        """,
        5,
    )
    assert programs.told_by(5) == [[[2, 3, 4], True]] * 2 + [[[0, 1], True]] * 3


def test_a_port_serves_one_client_after_the_other(programs: Programs) -> None:
    programs.run(
        """
        if world.rank == 0:
            port = MPI.Open_port()
            world.bcast(port, root=0)
            seen = []
            for _ in range(world.size - 1):
                client = MPI.COMM_SELF.Accept(port)
                seen.append(client.recv(source=0))
                client.Disconnect()
            MPI.Close_port(port)
            tell(sorted(seen))
        else:
            server = MPI.COMM_SELF.Connect(world.bcast(None, root=0))
            server.send(world.rank, dest=0)
            server.Disconnect()
        """,
        4,
    )
    assert programs.told("rank-0") == [[1, 2, 3]]


def test_nobody_is_at_a_port_that_is_closed(programs: Programs) -> None:
    programs.run(
        """
        port = MPI.Open_port()
        MPI.Close_port(port)
        try:
            world.Connect(port)
        except MPI.Exception as error:
            tell(error.Get_error_class() == MPI.ERR_PORT, port in str(error))
        """,
        1,
    )
    assert programs.told("rank-0") == [True, True]


def test_spawned_worlds_connect_with_each_other(programs: Programs) -> None:
    child = programs.write(
        "child.py",
        """
        parent = MPI.Comm.Get_parent()
        if sys.argv[1] == "server":
            port = None
            if world.rank == 0:
                port = MPI.Open_port()
                MPI.Publish_name("pair", port)
            parent.Barrier()
            other = world.Accept(world.bcast(port, root=0))
        else:
            other = world.Connect(MPI.Lookup_name("pair"))
        parent.send(other.allreduce(world.rank + 10), dest=0) if world.rank == 0 else (
            other.allreduce(world.rank + 10))
        other.Disconnect()
        parent.Disconnect()
        """,
    )
    programs.run(
        f"""
        servers = world.Spawn(sys.executable, [{child!r}, "server"], 2)
        servers.Barrier()
        clients = world.Spawn(sys.executable, [{child!r}, "client"], 3)
        tell(servers.recv(source=0), clients.recv(source=0))
        servers.Disconnect()
        clients.Disconnect()
        """,
        1,
    )
    assert programs.told("rank-0") == [10 + 11 + 12, 10 + 11]


JOIN = """
import socket
if {pair}:
    if world.rank == 0:
        sock, other = socket.socketpair()
        world.send(other.fileno(), dest=1)
    else:
        sock = socket.socket(fileno=os.dup(world.recv(source=0)))
elif world.rank == 0:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    world.send(server.getsockname()[1], dest=1)
    sock, _ = server.accept()
else:
    sock = socket.create_connection(("127.0.0.1", world.recv(source=0)))
inter = MPI.Comm.Join(sock.fileno())
seen = inter.sendrecv(world.rank, dest=0, source=0)
inter.Disconnect()
if world.rank == 0:
    sock.sendall(b"still open")
else:
    seen = [seen, sock.recv(10).decode()]
world.Barrier()
tell(seen)
"""


@pytest.mark.parametrize(
    "pair",
    [pytest.param(True, id="socketpair"),
     pytest.param(False, id="localhost", marks=pytest.mark.slow)],
)  # fmt: skip
def test_processes_join_at_a_socket(programs: Programs, pair: bool) -> None:
    programs.run(JOIN.format(pair=pair), 2)
    assert programs.told_by(2) == [[1], [[0, "still open"]]]


def test_joining_needs_a_connected_socket(programs: Programs) -> None:
    programs.run(
        """
        import socket
        classes = []
        for fd in (-1, os.open(os.devnull, os.O_RDONLY), socket.socket().fileno()):
            try:
                MPI.Comm.Join(fd)
            except MPI.Exception as error:
                assert "expected a connected socket" in str(error), error
                classes.append(error.Get_error_class() == MPI.ERR_ARG)
        tell(classes)
        """,
        1,
    )
    assert programs.told("rank-0") == [[True] * 3]


def test_who_joins_alone_is_reported(programs: Programs) -> None:
    result = programs.run(
        """
        import socket
        if world.rank == 0:
            sock, other = socket.socketpair()
            MPI.Comm.Join(sock.fileno())
        """,
        2,
        check=False,
    )
    assert result.exit_status == 3
    assert "Join" in result.error
