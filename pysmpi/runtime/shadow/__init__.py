"""Shadow execution: work that a run measures a few times, and afterwards only charges.

| file | what it holds |
| --- | --- |
| `estimate.py` | when there are enough measures, and what they say |
| `targets.py` | what `--sample` and `--once` name |
| `keys.py` | which calls are alike |
| `outputs.py` | what a call has left behind, and how to leave it again |
| `passes.py` | running, measuring or skipping one pass |
| `collective.py` | the same for passes that communicate, all ranks together |
| `annotations.py` | what `pysmpi.sample` does inside a run |
| `once.py` | functions that give the same on every rank |
| `automatic.py` | finding the functions worth sampling |
| `source.py`, `install.py` | putting all that in the place of the program's functions |
"""
