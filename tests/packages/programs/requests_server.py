"""Requests of each rank to an HTTP server in a thread of its neighbour, on this computer."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from mpi4py import MPI

comm = MPI.COMM_WORLD


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/numbers?n=3")
            self.end_headers()
        elif self.path.startswith("/numbers"):
            count = int(self.path.partition("=")[2] or 2)
            self.answer(
                200, {"rank": comm.rank, "numbers": [k**2 + comm.rank for k in range(count)]}
            )
        else:
            self.answer(404, {"error": self.path})

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, {"sum": sum(data["values"]), "agent": self.headers["X-Rank"]})

    def answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever)
thread.start()
ports = comm.allgather(server.server_address[1])
base = f"http://127.0.0.1:{ports[(comm.rank + 1) % comm.size]}"
with requests.Session() as session:
    session.headers["X-Rank"] = str(comm.rank)
    print(comm.rank, session.get(f"{base}/numbers", params={"n": 5}, timeout=60).json())
    moved = session.get(f"{base}/moved", timeout=60)
    print(comm.rank, moved.status_code, len(moved.history), moved.json()["numbers"])
    posted = session.post(f"{base}/sum", json={"values": [comm.rank, 2.5]}, timeout=60)
    print(comm.rank, posted.status_code, posted.json())
    missing = session.get(f"{base}/nothing", timeout=60)
    try:
        missing.raise_for_status()
    except requests.HTTPError as error:
        print(comm.rank, error.response.status_code, missing.json())
comm.barrier()
server.shutdown()
thread.join()
server.server_close()
try:
    requests.get(f"http://127.0.0.1:{ports[comm.rank]}/", timeout=10)
except requests.ConnectionError as error:
    print(comm.rank, type(error).__name__)
