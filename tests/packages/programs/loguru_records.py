"""loguru: sinks, levels, context and caught exceptions of each rank, as text and as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from loguru import logger
from mpi4py import MPI

comm = MPI.COMM_WORLD
logger.remove()
logger.add(sys.stdout, format="{extra[rank]} {level: <8} {function}:{line} {message}", level="INFO")
logger.add(f"log{comm.rank}.json", serialize=True, level="DEBUG", enqueue=False)
logger.level("STEP", no=25 + comm.rank, icon="-")
logger.configure(extra={"rank": comm.rank})


def work(n: int) -> float:
    with logger.contextualize(step=n):
        logger.debug("hidden {}", n)
        logger.log("STEP", "step {n} of {size}", n=n, size=comm.size)
        return 10 / (n - comm.rank)


@logger.catch(reraise=False, message="caught", default=-1.0)
def careful(n: int) -> float:
    return work(n)


def short(record: dict) -> str:
    return "{extra[rank]} {message}\n" if record["exception"] is None else "{extra[rank]} failed\n"


logger.remove(1)
logger.add(sys.stdout, format=short, level="INFO")
values = [careful(n) for n in range(3)]
print(comm.rank, values, comm.allgather(len(values)))
logger.bind(rank=f"bound {comm.rank}").warning("careful {:.3f}", comm.allreduce(values[0]))
logger.complete()
comm.barrier()
neighbour = (comm.rank + 1) % comm.size
records = [
    json.loads(line)["record"] for line in Path(f"log{neighbour}.json").read_text().splitlines()
]
for record in records:
    exception = record["exception"] and record["exception"]["type"]
    print(comm.rank, record["level"]["name"], record["extra"], record["message"], exception)
