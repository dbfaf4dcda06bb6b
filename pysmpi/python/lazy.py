"""Loading that happens once, also if several threads request it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class LazyLoad:
    """Calls `load()` once; other threads wait until it has ended. Nested requests from `load`
    itself continue with the partial result.
    """

    def __init__(self, load: Callable[[], object]) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._begun = False
        self.done = False

    def __call__(self) -> None:
        if self.done:
            return
        with self._lock:
            if self._begun:
                return
            self._begun = True
            try:
                self._load()
            except BaseException:
                self._begun = False
                raise
            self.done = True
