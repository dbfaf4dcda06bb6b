"""anyio over asyncio and trio: task groups, streams, limits, threads, sockets and timeouts."""

from __future__ import annotations

import anyio
from anyio import to_thread
from mpi4py import MPI

comm = MPI.COMM_WORLD


async def main() -> None:
    send, receive = anyio.create_memory_object_stream(3)
    limit = anyio.CapacityLimiter(2)
    got: list[int] = []

    async def produce(stream, k: int) -> None:
        async with stream:
            for i in range(3):
                await anyio.sleep(0.001 * k)
                await stream.send(10 * k + i + comm.rank)

    async with anyio.create_task_group() as group:
        async with send:
            for k in range(3):
                group.start_soon(produce, send.clone(), k)
        async with receive:
            async for number in receive:
                got.append(number)
    print(comm.rank, sorted(got))
    squares = [await to_thread.run_sync(lambda n=n: n * n, limiter=limit) for n in range(4)]
    print(comm.rank, squares)
    with anyio.move_on_after(0.05) as scope:
        await anyio.sleep_forever()
    print(comm.rank, scope.cancelled_caught)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def serve(stream) -> None:
        async with stream:
            await stream.send((await stream.receive()).upper())

    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(f"hello {comm.rank}".encode())
            print(comm.rank, (await stream.receive()).decode())
        group.cancel_scope.cancel()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(fail, "one")
    except BaseExceptionGroup as errors:
        print(comm.rank, [str(one) for one in errors.exceptions])
    done = await anyio.run_process(["sh", "-c", f"echo child {comm.rank}; exit 0"])
    print(comm.rank, done.stdout.decode().strip(), done.returncode)


async def fail(text: str) -> None:
    raise ValueError(f"{text} {comm.rank}")


for backend in ("asyncio", "trio"):
    anyio.run(main, backend=backend)
    print(comm.rank, backend, comm.allreduce(1))
