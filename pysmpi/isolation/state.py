"""`ProcessState`: one thing that a process has once, and that each rank has for itself.

The working directory, the handlers of signals, `json.made_up`, the registry of `csv`: whatever it
is, the exchange needs four methods to give each rank its own. `exchange.py` says when it calls
them.
This is all that it takes for a setting that C code changes, unseen:

```python
class Level(ProcessState):
    name = "level of the library"
    polled = True  # ask `differs` at each switch

    def differs(self):
        return True

    def capture(self):
        return library.get_level()

    def install(self, value):
        library.set_level(value)


exchange.follow(Level(exchange))
```

There are two ways to notice a change. A *polled* state looks at each switch. The others have
replaced the functions that change the state: `Setting` for one value, `Parts` for a dictionary of
values of which ranks change a few. They cost nothing until a rank calls such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches


class ProcessState:
    """One thing that a process has once.

    `name` is unique; values of ranks are in `state.own[name]`. A value may be of any type. It is
    compared by identity: the exchange installs a value that is not the one that is shown.
    """

    name = ""
    polled = False  # whether the exchange asks `differs` at each switch
    after_others = False  # whether it is installed after all that are not so
    common: Any = None  # the value of the caller of the run, and mostly of ranks without their own
    shown: Any = None  # the value that the process has, as far as it is known

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    def initial(self, state: State) -> Any:
        """The value of a rank that has none of its own."""
        return self.common

    def differs(self) -> bool:
        """Whether the running rank may have changed the value since it was installed."""
        return False

    def capture(self) -> Any:
        """The value that the process has now, to be installed later."""
        raise TypeError(f"{type(self).__name__} cannot be read")

    def install(self, value: Any) -> None:
        """Give the process a value; `shown` is still the one before."""

    def record(self, state: State) -> None:
        """Store the present value as that of the running rank, which has `state`."""
        value = self.shown = self.capture()
        if state is self.exchange.outside:
            self.common = value
        else:
            state.keep(self.name, value)

    def follow(self) -> None:
        """Exchange this state from here on; its present value is the common one."""
        if self.exchange.process_states.get(self.name) is not self:
            self.exchange.follow(self)

    def forget(self, state: State) -> None:
        """Release what is held for a rank that has ended and had a value of its own."""


class Setting(ProcessState):
    """A value that replaced functions change. A subclass has `capture` and `write`.

    Values are compared by equality, because writing may be a call of the operating system.
    """

    def write(self, value: Any) -> None:
        """Give the process a value."""
        raise TypeError(f"{type(self).__name__} cannot be written")

    def original(self) -> Any:
        """The value of the caller, which no rank has changed yet."""
        return self.capture()

    def install(self, value: Any) -> None:
        if value != self.shown:
            self.write(value)

    def change(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Call a function that changes the state for the rank that is running."""
        exchange = self.exchange
        state = exchange.shown
        if not exchange.follows(self.name):
            if state is exchange.outside:
                return function(*args, **kwargs)
            self.common = self.shown = self.original()
            exchange.follow(self)
        try:
            return function(*args, **kwargs)
        finally:
            self.record(state)

    def replace(self, patches: Patches, owner: object, *names: str) -> None:
        """Let functions of a module change the state of one rank."""
        for name in names:
            real = getattr(owner, name, None)
            if real is not None:
                patches.set(owner, name, like(real, self._changing(real)))

    def _changing(self, real: Callable[..., object]) -> Callable[..., object]:
        def change(*args: object, **kwargs: object) -> object:
            return self.change(real, *args, **kwargs)

        return change


class Accessed(Setting):
    """A setting with a function to get and one to set it, such as the recursion limit."""

    def __init__(
        self, exchange: Exchange, name: str, get: Callable[[], Any], set: Callable[[Any], object]
    ) -> None:
        super().__init__(exchange)
        self.name = name
        self.capture = get  # type: ignore[method-assign]
        self._set = set

    def write(self, value: Any) -> None:
        self._set(value)


class PolledSetting(ProcessState):
    """A setting that C code changes unseen, or that a package keeps for each thread."""

    polled = True

    def __init__(
        self, exchange: Exchange, name: str, get: Callable[[], Any], put: Callable[[Any], object]
    ) -> None:
        super().__init__(exchange)
        self.name = name
        self.capture, self.install = get, put  # type: ignore[method-assign, assignment]
        self.common = get()

    def differs(self) -> bool:
        return True


class Parts(ProcessState):
    """Many values of which ranks change a few, such as the handlers of signals.

    The value of a rank is a dictionary of the parts that it has changed.
    """

    common: dict[Any, Any]

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.common = self.shown = {}  # of ranks that have changed nothing

    def own(self) -> dict[Any, Any]:
        """The parts of the running rank, to be changed; the state is exchanged from here on."""
        self.follow()
        state = self.exchange.shown
        parts: dict[Any, Any] | None = state.own.get(self.name)
        if parts is None:
            parts = self.shown = {}
            state.keep(self.name, parts)
        return parts


class SharedParts(Parts):
    """Parts that have a common value each, in `shared`."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.shared: dict[Any, Any] = {}

    def put(self, key: Any, value: Any) -> None:
        """Give the process a value of one part."""
        raise TypeError(f"parts of {type(self).__name__} cannot be written")

    def note(self, key: Any, common: object, value: object) -> None:
        """The running rank has changed a part; the caller has `common`."""
        self.shared.setdefault(key, common)
        own = self.own()
        if value == self.shared[key]:
            own.pop(key, None)
        else:
            own[key] = value

    def install(self, value: dict[Any, Any]) -> None:
        before = self.shown
        for key in before:
            if key not in value:
                self.put(key, self.shared[key])
        for key, part in value.items():
            if part != before.get(key, self.shared[key]):
                self.put(key, part)
