"""The pytest plugin: tests of MPI programs run on simulated ranks, in the process of pytest.

`plugin.py` has the hooks that pytest calls in every session; it is small, because pytest loads it
for suites without MPI, too. The other modules are loaded with the first test that needs ranks:
`runner.py` runs such a test in a `World` of ranks (`world.py`), in which each rank has a session
of pytest (`worker.py`); `merging.py` makes one report of those of the ranks.
"""
