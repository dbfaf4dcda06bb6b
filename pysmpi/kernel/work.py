"""Work on resources without a message, such as the access of a process to a disk."""

from typing import TYPE_CHECKING, Any

from pysmpi.kernel.activities import Activity, Constraint
from pysmpi.kernel.requests import KernelRequest

if TYPE_CHECKING:
    from pysmpi.kernel.engine import Engine


class Work(Activity):
    """First a latency (s), then an amount of work that shares its constraints.

    `request` completes at the end; `ended()` is called just before, if there is one.
    """

    def __init__(
        self,
        engine: "Engine",
        latency: float,
        amount: float,
        bound: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
        ended: Any = None,
    ) -> None:
        super().__init__(amount, 1.0, bound, constraints, weights)
        self.engine: Engine = engine
        self.latency: float = latency
        self.latent: bool = True
        self.ended: Any = ended
        self.request: KernelRequest = KernelRequest()

    def start(self) -> None:
        """Begin: the latency passes first."""
        if self.latency > 0.0:
            self.engine.queue.push(self.engine.now + self.latency, self)
        else:
            self.fire()

    def fire(self) -> None:
        """End the latency, or work without contention."""
        if not self.latent:
            Activity.fire(self)
            return
        self.latent = False
        if self.work > 0.0:
            self.engine.system.add(self)
        else:
            self.finish()

    def finish(self) -> None:
        """The work is done."""
        if self.ended is not None:
            self.ended()
        self.request.complete(self.engine.now)
