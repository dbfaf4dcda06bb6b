"""Cache-coherence protocols as transition tables.

`protocol("MESI").read(("M", "I"), 1)` returns the result of one access: the new states of the line
in each cache, and the `LineTransfer` of the data. The tables are the files in `tables/`.
"""

from pysmpi.memory.coherence.library import names, protocol, shipped
from pysmpi.memory.coherence.protocol import LineTransfer, Protocol, ProtocolError, States

__all__ = ["Protocol", "ProtocolError", "States", "LineTransfer", "names", "protocol", "shipped"]
