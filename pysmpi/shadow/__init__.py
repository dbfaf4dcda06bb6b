"""Shadow execution: a run measures work a few times, and afterwards only charges its time.

| file | contents |
| --- | --- |
| `estimate.py` | the number of measures, and the estimate of a pass |
| `targets.py` | the targets of `--sample` and `--once` |
| `keys.py` | calls that are alike |
| `outputs.py` | the outputs of a call, and writing them again |
| `passes.py` | running, measuring or skipping one pass |
| `collective.py` | the same for passes that communicate, all ranks together |
| `annotations.py` | `pysmpi.sample` inside a run |
| `once.py` | functions with the same result on every rank |
| `automatic.py` | finding functions to sample |
| `source.py`, `install.py` | replacing the program's functions |
"""
