"""Studies of the cache protocols of Bull's FAME architecture."""

PAPER = "Chehaibar et al., Modeling Multiprocessor Cache Protocol Impact on MPI Performance (2009)"
