"""Memory folding: arrays that all ranks allocate at the same line share one memory.

| file | what lives there |
| --- | --- |
| `ledger.py` | which ranks hold which shared block; no memory, no numpy |
| `arena.py` | the address range in which shared blocks lie, mapped and given back |
| `handler.py` | numpy's hook for allocating the data of arrays |
| `partial.py` | arrays of which a part is the rank's own: the same pages mapped several times |
| `faults.py` | what first touching fresh memory costs, which shared memory would hide |
| `setup.py` | `--fold`, and `Folding`, which puts these together for a run |
"""
