"""The loops over examples that dlp_mpi's manual shows."""

from __future__ import annotations

import time

import dlp_mpi
import numpy as np


def work(example: int) -> float:
    time.sleep(0.002 * (example % 3))
    return float(np.linalg.norm(np.arange(example + 1)))


examples = list(range(20))
managed = [work(example) for example in dlp_mpi.split_managed(examples, progress_bar=False)]
gathered = dlp_mpi.gather(managed)
if dlp_mpi.IS_MASTER:
    print("managed", sorted(one for part in gathered for one in part))
mapped = list(dlp_mpi.map_unordered(work, examples, progress_bar=False))
if dlp_mpi.IS_MASTER:
    print("mapped", sorted(mapped))
print("round robin", dlp_mpi.RANK, list(dlp_mpi.split_round_robin(examples)))
print("broadcast", dlp_mpi.RANK, dlp_mpi.bcast({"rank": dlp_mpi.RANK}), dlp_mpi.SIZE)
