"""An application with hydra's configuration and logging."""

from __future__ import annotations

import logging

import hydra
from hydra.core.config_store import ConfigStore
from mpi4py import MPI
from omegaconf import DictConfig

ConfigStore.instance().store(name="config", node={"grid": {"n": 16}, "steps": 3, "name": "base"})
log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_name="config")
def main(config: DictConfig) -> None:
    comm = MPI.COMM_WORLD
    log.info("rank %d of %d: %s", comm.rank, comm.size, config.name)
    total = sum(comm.allreduce(comm.rank * step + config.grid.n) for step in range(config.steps))
    print("total", comm.rank, total, dict(config.grid), config.name)


if __name__ == "__main__":
    main()
