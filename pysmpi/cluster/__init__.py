"""Work on a cluster: a client of Dask distributed, and processes that its workers keep."""
