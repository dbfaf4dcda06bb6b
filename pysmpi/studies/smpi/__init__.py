"""Studies of SMPI, the simulator with the hybrid network model."""

PAPER = (
    "Bedaride et al., Toward Better Simulation of MPI Applications on Ethernet/TCP Networks (2013)"
)
