"""Locks of the threads of ranks, which wait in virtual time.

They have the interface of `_thread.lock` and `_thread.RLock`. A fiber (a greenlet that runs the
code of a rank) waits with `block(timeout)` until another calls its `wake()`.
"""

from __future__ import annotations

import _thread
import atexit
import copyreg
import math
from collections import deque
from collections.abc import Callable, Collection
from inspect import Signature
from time import monotonic, sleep
from typing import Any

from greenlet import getcurrent

from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.time import alarms
from pysmpi.time.seconds import check_timeout

# A test that fails lets this much time pass (s), so that a loop of tests ends.
POLL_COST = 1e-7
_AT_EXIT = object()
_NO_TIMEOUT = -1
_REAL_STEP = 2e-4  # (s) between two tries of a real thread
_real_lock, _real_recursive = _thread.allocate_lock(), _thread.RLock()
_kind, _recursive = type(_real_lock), type(_real_recursive)
_TURN = 256  # locks that threads may take before others have their turn
_taken = 0


def begin_turns() -> None:
    """A run or a thread begins: turns do not depend on earlier runs in this process.

    The first run also takes locks while it imports modules.
    """
    global _taken
    _taken = 0


class SharedTurns:
    """The locks that shared modules take while they are imported do not count.

    The first run of a process imports them, later ones do not.
    """

    def __init__(self) -> None:
        self._before = 0

    def begin(self) -> None:
        """A shared module is imported."""
        self._before = _taken

    def end(self) -> None:
        """It is imported."""
        global _taken
        _taken = self._before


def give_way() -> None:
    """Let a little time pass in the running rank, after a test without success."""
    rank = ranks.current()
    if rank.program is not None:
        rank.sleep(POLL_COST)


def polling(real: Callable[..., Any], idle: bool) -> Callable[..., Any]:
    """A test that lets a little time pass if it returns `idle`."""

    def test(self: Any) -> Any:
        answer = real(self)
        if answer is idle:
            give_way()
        return answer

    return like(real, test)


def _lose_turn() -> None:
    """Run the other threads of the rank.

    A loop that takes a free lock to check shared state waits for one of them.
    """
    global _taken
    _taken = 0
    program: Any = ranks.current().program
    if program is not None and program.threaded and isinstance(running(), ranks.Fiber):
        give_way()


def running() -> Any:
    """The running fiber; another object at the exit of Python, when there are no fibers."""
    try:
        return ranks.fiber_of(getcurrent())
    except RuntimeError:
        return _AT_EXIT


def _is_real() -> bool:
    """Whether the caller is a real thread, such as one of a process that a rank has forked."""
    return ranks.current().program is None


def _wait_really(take: Callable[[], bool], timeout: float) -> bool:
    """Take a lock in a real thread, trying again and again."""
    end = None if timeout < 0 else monotonic() + timeout
    while not take():
        if end is not None and monotonic() >= end:
            return False
        sleep(_REAL_STEP)
    return True


def wait(waiting: deque[object], timeout: float) -> bool:
    """Wait in a queue until another fiber removes this one; return whether it did."""
    fiber: Any = running()
    waiting.append(fiber)
    try:
        if alarms.next_alarm() is None:
            fiber.block(None if timeout < 0 else timeout)
        else:
            _wait_with_alarms(fiber, timeout)
    finally:
        if fiber in waiting:
            waiting.remove(fiber)
            taken = False
        else:
            taken = True
    return taken


def _wait_with_alarms(fiber: Any, timeout: float) -> None:
    rank = fiber.rank
    end = math.inf if timeout < 0 else rank.now() + timeout
    while True:
        time = alarms.next_alarm()
        until = end if time is None else min(time, end)
        left = until - rank.now()
        if fiber.block(None if left == math.inf else left) or until == end:
            return
        alarms.deliver()


def reduce_as(real: Any, own: Any, kind: type, protocol: object) -> Any:
    """The answer to `pickle` and `copy` for an object in the place of `real`: usually an error.

    An object of a subclass of `kind` can be copied if its class has a `__getstate__`, as with the
    types of C that have state which Python does not see.
    """
    if type(own) is not kind:
        defined = getattr(type(own), "__getstate__", None)
        if defined is None or defined is getattr(kind, "__getstate__", None):
            raise TypeError(f"cannot pickle {type(own).__name__!r} object")
        new: Any = vars(copyreg)["__newobj__"]
        return new, (type(own),), own.__getstate__(), None, None
    try:
        return real.__reduce_ex__(protocol)
    except TypeError as error:
        raise TypeError(*error.args) from None


def state_without(own: object, names: Collection[str]) -> Any:
    """The state of an object for `copy` (Python 3.11 and later), without attributes of ours."""
    state: Any = object.__getstate__(own)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    attributes, slots = (
        {name: value for name, value in (part or {}).items() if name not in names} or None
        for part in (attributes, slots)
    )
    return attributes if slots is None else (attributes, slots)


class RankLock:
    """A lock; the fiber that waits longest gets it."""

    __slots__ = ("_held", "_waiting", "__weakref__")

    # `isinstance` takes it for a real lock.
    __class__: Any = property(lambda self: _kind)

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[Any] = deque()

    def acquire(self, blocking: bool = True, timeout: float = _NO_TIMEOUT) -> bool:
        """Take the lock, waiting at most `timeout` seconds (-1: as long as it takes)."""
        global _taken
        _taken += 1
        if _taken > _TURN:
            _lose_turn()
        if timeout is not _NO_TIMEOUT or blocking is not True:
            timeout = check_timeout(blocking, timeout)
        if not self._held:
            self._held = True
            return True
        if not blocking:
            give_way()
            return False
        if _is_real():
            return _wait_really(self._take, timeout)
        # A release passes the lock to the next fiber, so it is held all the time.
        return wait(self._waiting, timeout)

    def _take(self) -> bool:
        if self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Pass the lock to the fiber that waits longest, or free it."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        if self._waiting:
            self._waiting.popleft().wake()
        else:
            self._held = False

    def locked(self) -> bool:
        """Whether the lock is held."""
        return self._held

    def _is_owned(self) -> bool:
        # Used by `Condition`; it would otherwise try to acquire the lock.
        return self._held

    def _at_fork_reinit(self) -> None:
        self._held = False
        self._waiting.clear()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    # Names that `_thread.lock` has, too.

    def acquire_lock(self, blocking: bool = True, timeout: float = _NO_TIMEOUT) -> bool:
        """Take the lock."""
        return self.acquire(blocking, timeout)

    def release_lock(self) -> None:
        """Release the lock."""
        self.release()

    def locked_lock(self) -> bool:
        """Whether the lock is held."""
        return self._held

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_as(_real_lock, self, type(self), protocol)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(0)

    def __getstate__(self) -> Any:
        return None

    def __repr__(self) -> str:
        state = "locked" if self._held else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"


class LockClass(type):
    """The class of `CalledLock`, which makes and recognizes locks of ranks and real ones."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """A lock of a rank, or a real one for the code of no rank."""
        if args or kwargs or _is_real():
            make: Any = _kind
            return make(*args, **kwargs)
        return super().__call__()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _kind)


class CalledLock(RankLock, metaclass=LockClass):
    """The lock of programs from Python 3.13 on, where `threading.Lock` is a class."""

    __slots__ = ()
    __signature__ = Signature()


class ThreadLock(RankLock):
    """The lock that `threading` holds while a thread lives (`_tstate_lock`, until Python 3.12).

    After the end of the thread it is open to all fibers that join it: each acquires and releases
    it, and expects it to be free.
    """

    __slots__ = ()

    def release(self) -> None:
        """End the thread, or release the lock after its end."""
        self._held = False
        while self._waiting:
            self._waiting.popleft().wake()


class RankRLock:
    """A lock that its owner, a fiber, can acquire several times."""

    __slots__ = ("_owner", "_count", "_waiting", "__weakref__")

    # `isinstance` takes it for a real lock.
    __class__: Any = property(lambda self: _recursive if type(self) is RankRLock else type(self))

    _owner: Any
    _count: int
    _waiting: deque[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A lock of a rank, or a real one for the code of no rank."""
        if cls is RankRLock and _is_real():
            return _recursive(*args, **kwargs)
        self: Any = object.__new__(cls)
        self._owner = None
        self._count = 0
        self._waiting = deque()
        return self

    def acquire(self, blocking: bool = True, timeout: float = _NO_TIMEOUT) -> bool:
        """Take the lock, waiting at most `timeout` seconds (-1: as long as it takes)."""
        global _taken
        _taken += 1
        if _taken > _TURN:
            _lose_turn()
        if timeout is not _NO_TIMEOUT or blocking is not True:
            timeout = check_timeout(blocking, timeout)
        fiber = running()
        if self._owner is fiber:
            self._count += 1
            return True
        if self._owner is None:
            self._owner = fiber
            self._count = 1
            return True
        if not blocking:
            give_way()
            return False
        if _is_real():
            return _wait_really(self._take, timeout)
        return wait(self._waiting, timeout)

    def _take(self) -> bool:
        if self._owner is not None:
            return False
        self._owner = running()
        self._count = 1
        return True

    def release(self) -> None:
        """Undo one `acquire`; the last one resumes the fiber that waits longest."""
        if self._owner is not running():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            self._owner = self._waiting.popleft()
            self._count = 1
            self._owner.wake()
        else:
            self._owner = None
            self._count = 0

    def locked(self) -> bool:
        """Whether the lock is held."""
        return self._owner is not None

    def _is_owned(self) -> bool:
        return self._owner is running()

    def _recursion_count(self) -> int:
        return self._count if self._is_owned() else 0

    def _release_save(self) -> int:
        # Used by `Condition.wait`: release all at once, and acquire the same number again.
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        count = self._count
        self._hand_over()
        return count

    def _acquire_restore(self, count: int) -> None:
        self.acquire()
        self._count = count

    def _at_fork_reinit(self) -> None:
        self._owner = None
        self._count = 0
        self._waiting.clear()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_as(_real_recursive, self, RankRLock, protocol)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(0)

    def __getstate__(self) -> Any:
        return state_without(self, RankRLock.__slots__)

    def __repr__(self) -> str:
        owner = 0 if self._owner is None else getattr(self._owner, "thread_number", None) or 1
        state = "unlocked" if self._owner is None else "locked"
        return f"<{state} _thread.RLock object owner={owner} count={self._count} at {id(self):#x}>"


def _take_at_once(lock: RankRLock, blocking: bool = True, timeout: float = -1) -> bool:
    return True


def _nothing(lock: RankRLock) -> None:
    return None


@atexit.register
def _end() -> None:
    """Python ends: the running greenlet is no longer known, and no other one runs."""
    for name, function in {"acquire": _take_at_once, "release": _nothing}.items():
        setattr(RankRLock, name, function)


def _no_base(kind: type[object], /, **options: object) -> None:
    raise TypeError(f"type '_thread.{_kind.__name__}' is not an acceptable base type")


RankLock.__init_subclass__ = classmethod(_no_base)  # type: ignore[assignment]
LockClass.__name__ = "type"
RankLock.__doc__ = CalledLock.__doc__ = ThreadLock.__doc__ = _kind.__doc__
RankRLock.__doc__ = _recursive.__doc__

# Some libraries check the origin of a lock, such as event loops that need one that signals may
# interrupt.
for _class, _like in (
    (RankLock, _kind),
    (CalledLock, _kind),
    (ThreadLock, _kind),
    (RankRLock, _recursive),
):
    _class.__module__ = "_thread"
    _class.__name__ = _class.__qualname__ = _like.__name__
    # Methods that a lock of this version of Python does not have.
    for _name in [name for name in vars(_class) if name[0] != "_" and not hasattr(_like, name)]:
        delattr(_class, _name)
