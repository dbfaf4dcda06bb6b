"""A network of neurons, its cells and edges built by all ranks."""

from __future__ import annotations

import numpy as np
from bmtk.builder import NetworkBuilder
from mpi4py import MPI

comm = MPI.COMM_WORLD
np.random.seed(2)
net = NetworkBuilder("v1")
net.add_nodes(N=40, model="exc", position=np.arange(40.0), ei="e")
net.add_nodes(N=10, model="inh", position=np.arange(10.0), ei="i")
net.add_edges(source={"ei": "e"}, target={"ei": "i"},
              connection_rule=lambda source, target: (source["node_id"] + target["node_id"]) % 3,
              syn_weight=0.1)  # fmt: skip
net.build()
print(comm.rank, net.nnodes, net.nedges)
