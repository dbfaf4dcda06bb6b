"""Changes of loggers by a shared package, while it is imported, reach the ranks' own values."""

from __future__ import annotations

import pysmpi

FIRST = """
    import logging

    OLD, SPARE = logging.NullHandler(), logging.NullHandler()
    logger = logging.getLogger("of_shared_loggers")
    logger.addHandler(OLD)
    logger.setLevel(30)
"""
SECOND = """
    import logging

    import shared_loggers_first

    NEW = logging.NullHandler()
    logger = logging.getLogger("of_shared_loggers")
    logger.addHandler(NEW)
    logger.addHandler(shared_loggers_first.SPARE)
    logger.setLevel(40)
"""
PROGRAM = """
    import logging

    import shared_loggers_first as first
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    logger = logging.getLogger("of_shared_loggers")
    own = logging.NullHandler()
    if comm.rank == 1:  # a handler and a level of its own
        logger.addHandler(own)
        logger.setLevel(5)
        assert logger.isEnabledFor(35)
    elif comm.rank == 2:  # not the handler of the package; its level is that of the others
        logger.removeHandler(first.OLD)
        logger.setLevel(30)
        assert logger.isEnabledFor(35)
    elif comm.rank == 3:  # a handler that the second package adds, too
        logger.addHandler(first.SPARE)
    comm.Barrier()
    if comm.rank == 0:
        import shared_loggers_second
    comm.Barrier()
    import shared_loggers_second as second

    names = {first.OLD: "old", first.SPARE: "spare", second.NEW: "new", own: "own"}
    state = [names[one] for one in logger.handlers], logger.level, logger.isEnabledFor(35)
    result = comm.gather(state)
    if comm.rank == 0:
        assert result == [
            (["old", "new", "spare"], 40, False),
            (["old", "own", "new", "spare"], 5, True),
            (["new", "spare"], 40, False),
            (["old", "spare", "new"], 40, False),
        ], result
"""


def test_a_package_that_is_imported_later_changes_the_loggers_of_all_ranks(site, write) -> None:
    site("shared_loggers_first.py", FIRST)
    site("shared_loggers_second.py", SECOND)
    shared = ["shared_loggers_first", "shared_loggers_second"]
    result = pysmpi.run(write("program.py", PROGRAM), 4, compute="none", shared=shared)
    assert result.exit_status == 0
