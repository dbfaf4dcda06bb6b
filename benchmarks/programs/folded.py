"""Memory that stands for the buffers of all ranks; loaded once for all by `--shared folded`."""

import numpy as np

_arrays = {}


def buffer(name, nbytes):
    """The buffer of this name, the same in each call."""
    if name not in _arrays:
        _arrays[name] = np.zeros(nbytes, np.int8)
    return _arrays[name]
