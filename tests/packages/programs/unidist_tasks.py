"""Remote functions and actors of unidist: rank 0 controls, rank 1 watches, the others work."""

import numpy
import unidist
from unidist.config import Backend

Backend.put("mpi")
unidist.init()


@unidist.remote
def square(x):
    return x * x


@unidist.remote
def total(*parts):
    return sum(parts)


@unidist.remote
class Counter:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
        return self.value


@unidist.remote(num_returns=2)
def halves(array):
    middle = len(array) // 2
    return array[:middle], array[middle:]


@unidist.remote
def fails(x):
    raise ZeroDivisionError(str(x))


refs = [square.remote(n) for n in range(12)]
print("squares", unidist.get(refs))
print("total", unidist.get(total.remote(*refs)))
counter = Counter.remote(5)
for n in range(4):
    last = counter.add.remote(n)
print("counter", unidist.get(last))
large = unidist.put(numpy.arange(400_000.0))
left, right = halves.remote(large)
print("halves", unidist.get(left).sum(), unidist.get(right).sum())
ready, rest = unidist.wait(refs, num_returns=len(refs))
print("ready", len(ready), len(rest))
try:
    unidist.get(fails.remote(3))
except ZeroDivisionError as error:
    print("caught", error)
unidist.shutdown()
