"""Cores: their speed, which may change with time, and the resource that their residents share."""

from typing import Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.activities import Constraint


@mypyc_attr(allow_interpreted_subclasses=True)
class Pace:
    """The speed of a core as a function of time, as a fraction of the full speed."""

    def seconds(self, begin: float, work: float) -> float:
        """The seconds that `work` seconds at full speed take from the time `begin` (s) on."""
        return work


@mypyc_attr(allow_interpreted_subclasses=True)
class Interruptions:
    """The times for which a core leaves the compute of its residents."""

    def seconds(self, work: float) -> float:
        """The seconds of the interruptions of the next `work` seconds of compute."""
        return 0.0


class Core:
    """A core of a host: `speed` in flop/s, shared by the `residents` that compute on it.

    With a `pace` its speed changes; `factor` is the present fraction of the full speed. With
    `interruptions` it stops now and then. With a `memory`, its compute moves `traffic` bytes a flop
    from this memory, which others use, too.
    """

    def __init__(self, speed: float, host: str = "", number: int = 0) -> None:
        self.speed: float = speed
        self.host: str = host
        self.number: int = number
        self.residents: int = 0
        self.shared: Optional[Constraint] = None
        self.pace: Optional[Pace] = None
        self.interruptions: Optional[Interruptions] = None
        self.factor: float = 1.0
        self.memory: Optional[Constraint] = None
        self.traffic: float = 0.0

    def alone(self, begin: float, seconds: float) -> float:
        """The seconds that compute takes on a core of its own; at full speed it takes `seconds`."""
        pace = self.pace
        if pace is not None:
            seconds = pace.seconds(begin, seconds)
        return seconds + self.interrupted(seconds)

    def interrupted(self, seconds: float) -> float:
        """The seconds for which the core leaves the next `seconds` of compute."""
        interruptions = self.interruptions
        return 0.0 if interruptions is None else interruptions.seconds(seconds)

    def changes(self) -> bool:
        """Whether compute may take another time than at the full speed."""
        return self.pace is not None or self.interruptions is not None

    def bills_alone(self) -> bool:
        """Whether only the core itself determines the time of compute: nothing is shared."""
        return self.changes() and not self.shares()

    def shares(self) -> bool:
        """Whether the compute of others, on the core or in its memory, delays that of one."""
        return self.residents > 1 or self.memory is not None

    @property
    def constraint(self) -> Constraint:
        """The resource that several residents share; most cores have one resident and need none."""
        if self.shared is None:
            self.shared = Constraint(self.speed * self.factor, f"{self.host}/{self.number}")
        return self.shared
