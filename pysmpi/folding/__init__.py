"""Memory folding: arrays that all ranks allocate at the same line share one memory.

| file | contents |
| --- | --- |
| `ledger.py` | the ranks that hold each shared block; no memory, no numpy |
| `arena.py` | the address range of shared blocks, mapping and unmapping |
| `handler.py` | numpy's hook for allocating the data of arrays |
| `partial.py` | arrays with a private part: the same pages mapped several times |
| `faults.py` | the time of first accesses to fresh memory, which shared memory would hide |
| `setup.py` | `--fold`, and `Folding`, which combines these parts for a run |
"""
