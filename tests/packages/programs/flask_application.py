"""A Flask application in each rank: routes, sessions, errors, templates; driven by its client."""

from __future__ import annotations

import threading
import urllib.request

from flask import Flask, abort, jsonify, render_template_string, request, session, url_for
from mpi4py import MPI
from werkzeug.serving import make_server

comm = MPI.COMM_WORLD
app = Flask(__name__)
app.secret_key = "key"


@app.route("/reduce/<int:n>")
def reduce(n: int):
    session["count"] = session.get("count", 0) + n
    return jsonify(rank=comm.rank, total=sum(range(n)), count=session["count"])


@app.post("/form")
def form():
    if "x" not in request.form:
        abort(400, "no x")
    return render_template_string(
        "<b>{{ x }}</b> of {{ rank }}", x=request.form["x"], rank=comm.rank
    )


@app.errorhandler(404)
def missing(error):
    return f"rank {comm.rank} has no {request.path}", 404


@app.after_request
def mark(response):
    response.headers["X-Rank"] = comm.rank
    return response


with app.test_client() as client:
    for n in (3, 4 + comm.rank):
        answer = client.get(f"/reduce/{n}")
        print(comm.rank, answer.json, answer.headers["X-Rank"])
    print(comm.rank, client.post("/form", data={"x": "<1>"}).text, client.post("/form").status_code)
    print(comm.rank, client.get("/nothing").text, dict(session))
with app.test_request_context():
    print(comm.rank, url_for("reduce", n=comm.rank, q="a b"))
server = make_server("127.0.0.1", 0, app, threaded=True)
thread = threading.Thread(target=server.serve_forever)
thread.start()
ports = comm.allgather(server.port)
url = f"http://127.0.0.1:{ports[(comm.rank + 1) % comm.size]}/reduce/10"
print(comm.rank, urllib.request.urlopen(url, timeout=60).read().decode().strip())
comm.barrier()
server.shutdown()
thread.join()
