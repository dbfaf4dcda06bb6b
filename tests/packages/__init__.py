"""Published packages run under a real MPICH and under pysmpi, and are compared."""
