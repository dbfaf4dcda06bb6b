"""A dask cluster of ranks: a scheduler, workers, and a client that asks them."""

from __future__ import annotations

from dask.distributed import Client
from dask_mpi import execute


def client() -> None:
    with Client() as session:
        session.wait_for_workers(2)
        futures = session.map(lambda k: k**2, range(20))
        print("squares", session.gather(futures))
        print("sum", session.submit(sum, futures).result())
        print("workers", sorted(worker["name"] for worker in
                                session.scheduler_info()["workers"].values()))  # fmt: skip


if __name__ == "__main__":
    execute(client, dashboard=False)
