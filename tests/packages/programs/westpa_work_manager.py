"""Tasks of WESTPA's work manager: rank 0 submits them, the others wait for them in a thread."""

from mpi4py import MPI
from westpa.work_managers.mpi import MPIWorkManager


def power(base, exponent=2):
    return base**exponent, base


def fails(value):
    raise ValueError(f"no {value}")


with MPIWorkManager() as manager:
    if manager.is_master:
        futures = [manager.submit(power, args=(n,), kwargs={"exponent": 3}) for n in range(20)]
        print("powers", sorted(future.get_result() for future in futures))
        bad = manager.submit(fails, args=("way",))
        try:
            bad.get_result()
        except ValueError as error:
            print("caught", error)
        tasks = ((power, (n,), {}) for n in range(30))
        done = manager.submit_as_completed(tasks, queue_size=6)
        print("sum", sum(future.get_result()[0] for future in done))
    else:
        manager.run()
print("rank", MPI.COMM_WORLD.rank, type(manager).__name__)
