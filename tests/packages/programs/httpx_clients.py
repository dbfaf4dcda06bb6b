"""httpx: clients of an ASGI application in the rank, and of a server of the neighbour."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from mpi4py import MPI

comm = MPI.COMM_WORLD


async def app(scope, receive, send) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    text = json.dumps({"path": scope["path"], "length": len(body), "rank": comm.rank}).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"x-rank", b"%d" % comm.rank)]}
    )
    await send({"type": "http.response.body", "body": text})


async def inside() -> list[dict]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://rank") as client:
        answers = await asyncio.gather(
            *(client.post(f"/p{k}", content=b"x" * (k + comm.rank)) for k in range(4))
        )
    return [one.json() for one in answers]


for line in asyncio.run(inside()):
    print(comm.rank, line)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{comm.rank}:{self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever, daemon=True)
thread.start()
ports = comm.allgather(server.server_address[1])
with httpx.Client(timeout=60) as client:
    for k in range(3):
        answer = client.get(
            f"http://127.0.0.1:{ports[(comm.rank + k) % comm.size]}/a b", params={"k": k}
        )
        print(comm.rank, answer.status_code, answer.text)
comm.barrier()
server.shutdown()
server.server_close()
print(comm.rank, httpx.URL("http://é.org/ä?x=1#y").copy_merge_params({"r": comm.rank}))
