"""Studies of small programs over shared memory: their properties, sizes, chains and simulations."""
