"""Tasks of Celery, run in the rank: retries, chains, groups, chords; results gathered."""

from __future__ import annotations

from celery import Celery, chain, chord, group
from mpi4py import MPI

comm = MPI.COMM_WORLD
app = Celery("tasks", broker="memory://", backend="cache+memory://")
app.conf.update(task_always_eager=True, task_store_eager_result=True, task_eager_propagates=False)


@app.task
def multiply(x: int, y: int) -> int:
    return x * y


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers) + comm.rank


@app.task(bind=True, max_retries=3, default_retry_delay=0)
def unsteady(self, n: int) -> int:
    if self.request.retries < n:
        raise self.retry(exc=ValueError(f"try {self.request.retries}"))
    return self.request.retries


result = chain(multiply.s(2, comm.rank), multiply.s(10), multiply.s(3))()
print(comm.rank, result.get(), result.state)
print(comm.rank, group(multiply.s(k, comm.rank + 1) for k in range(5))().get())
print(comm.rank, chord((multiply.s(k, k) for k in range(4)), total.s())().get())
print(comm.rank, unsteady.delay(comm.rank % 3).get())
failed = unsteady.delay(9)
print(comm.rank, failed.state, failed.result)
print(comm.rank, sorted(name for name in app.tasks if not name.startswith("celery.")))
print(comm.rank, comm.allgather(multiply.apply_async((comm.rank, 7), countdown=0).get()))
