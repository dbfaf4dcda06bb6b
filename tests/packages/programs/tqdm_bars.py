"""Progress bars of tqdm in each rank, nested, by hand and around pandas-like calls."""

from __future__ import annotations

import io

from mpi4py import MPI
from tqdm import tqdm, trange
from tqdm.auto import tqdm as auto
from tqdm.contrib import tenumerate, tzip

comm = MPI.COMM_WORLD
screen = io.StringIO()
total = 0
for i in tqdm(range(200 + comm.rank), file=screen, desc=f"rank {comm.rank}", mininterval=0):
    total += i
last = screen.getvalue().split("\r")[-1]
print(comm.rank, total, last.split("|")[0], last.count("%"), last.split("[")[0].split()[-1])
with tqdm(total=1000 * (comm.rank + 1), unit="B", unit_scale=True, file=screen) as bar:
    for part in (100, 300, 600):
        bar.update(part * (comm.rank + 1))
        bar.set_postfix(part=part)
    print(comm.rank, bar.n, bar.format_dict["postfix"], bar.format_sizeof(bar.n))
values = [i * j for i in trange(4, disable=True) for j in auto(range(5), leave=False, file=screen)]
print(
    comm.rank, sum(values), len([*tenumerate("abc", file=screen)]), [*tzip("ab", "cd", file=screen)]
)
for _ in trange(3, desc="err"):
    comm.barrier()
print(
    comm.rank, comm.allreduce(total), tqdm.format_interval(3725 + comm.rank), len(tqdm._instances)
)
