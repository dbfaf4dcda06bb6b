"""structlog: processors, bound and context variables, standard logging; events gathered."""

from __future__ import annotations

import io
import logging
import sys

import structlog
from mpi4py import MPI
from structlog.contextvars import bind_contextvars, bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

comm = MPI.COMM_WORLD
file = io.StringIO()
structlog.configure(
    processors=[
        merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["event", "level", "rank"], sort_keys=True),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=structlog.PrintLoggerFactory(file),
)
bind_contextvars(rank=comm.rank)
log = structlog.get_logger(job="test")
log.info("begun", size=comm.size)
log.debug("hidden")
for k in range(2 + comm.rank):
    with bound_contextvars(step=k):
        total = comm.allreduce(k) if k < 2 else -k
        log.bind(total=total).warning("stepped")
try:
    [][comm.rank]
except IndexError:
    log.exception("failed")
for line in comm.allgather(file.getvalue())[(comm.rank + 1) % comm.size].splitlines():
    print(comm.rank, line if "Traceback" not in line else line.split("\\n")[-1])
with capture_logs() as events:
    structlog.get_logger().error("captured", value=comm.rank**2)
print(comm.rank, events)

# Through the standard library.
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(
    structlog.stdlib.ProcessorFormatter(processor=structlog.processors.JSONRenderer(sort_keys=True))
)
root = logging.getLogger()
root.addHandler(handler)
root.setLevel(logging.INFO)
standard = structlog.wrap_logger(
    logging.getLogger("library"),
    processors=[structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    wrapper_class=structlog.stdlib.BoundLogger,
)
standard.info("from structlog", rank=comm.rank)
logging.getLogger("other").warning("plain %d", comm.rank)
