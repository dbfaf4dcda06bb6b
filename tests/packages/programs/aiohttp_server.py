"""aiohttp: a server and clients in one event loop of each rank; queries to the neighbour's."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web
from mpi4py import MPI

comm = MPI.COMM_WORLD


async def square(request: web.Request) -> web.Response:
    n = int(request.match_info["n"])
    await asyncio.sleep(0.01 * (n % 3))
    return web.json_response({"square": n * n, "rank": comm.rank})


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.data == "end":
            await socket.close()
        else:
            await socket.send_str(f"{message.data} from {comm.rank}")
    return socket


async def main() -> None:
    app = web.Application()
    app.add_routes([web.get("/square/{n}", square), web.get("/echo", echo)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:

        async def ask(n: int) -> int:
            async with session.get(f"{base}/square/{n}") as answer:
                return (await answer.json())["square"]

        numbers = await asyncio.gather(*(ask(n + comm.rank) for n in range(8)))
        print(comm.rank, numbers)
        async with session.get(f"{base}/missing") as answer:
            print(comm.rank, answer.status, answer.reason)
        async with session.ws_connect(f"{base}/echo") as socket:
            for k in range(3):
                await socket.send_str(f"message {k}")
                print(comm.rank, (await socket.receive()).data)
            await socket.send_str("end")
            print(comm.rank, (await socket.receive()).type.name)
    await runner.cleanup()
    print(comm.rank, comm.allreduce(sum(numbers)))


asyncio.run(main())
