"""Two servers keep copies of a table; clients write to both and read from one.

The error: a client writes to the servers without waiting for their answers, and servers apply
writes as they come. Two clients' writes to one key can arrive in different orders, and the copies
then differ.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

WRITE, READ, VALUE, LEAVE = 1, 2, 3, 4
SERVERS = 2


class Server:
    """A copy of the table."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.table: dict[str, int] = {}
        self.clients = comm.size - SERVERS

    def run(self) -> dict[str, int]:
        status = MPI.Status()
        while self.clients:
            message = self.comm.recv(source=MPI.ANY_SOURCE, status=status)
            if status.tag == WRITE:
                key, value = message
                self.table[key] = value
            elif status.tag == READ:
                self.comm.send(self.table.get(message), dest=status.source, tag=VALUE)
            else:
                self.clients -= 1
        return self.table


class Client:
    """A user of the table."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def write(self, key: str, value: int) -> None:
        """Write to all copies; should have one server order the writes."""
        for server in range(SERVERS):
            self.comm.send((key, value), dest=server, tag=WRITE)

    def read(self, key: str) -> int:
        server = self.comm.rank % SERVERS
        self.comm.send(key, dest=server, tag=READ)
        return int(self.comm.recv(source=server, tag=VALUE))

    def leave(self) -> None:
        for server in range(SERVERS):
            self.comm.send(None, dest=server, tag=LEAVE)


def main() -> None:
    comm = MPI.COMM_WORLD
    writes = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    table = None
    if comm.rank < SERVERS:
        table = Server(comm).run()
    else:
        client = Client(comm)
        for number in range(writes):
            client.write("total", 10 * comm.rank + number)
        assert client.read("total") >= 10 * SERVERS
        client.leave()
    tables = comm.gather(table, root=0)
    if tables is not None:
        copies = tables[:SERVERS]
        assert all(copy == copies[0] for copy in copies), f"the copies differ: {copies}"


main()
