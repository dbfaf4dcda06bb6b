"""mpiutils: a farm of tasks, and messages between its dispatcher and workers."""

from __future__ import annotations

from mpiutils import dispatcher

results = dispatcher.farm(lambda k: k**2, range(30))
if results is not None:
    found = sorted(results)
    if found:
        print("farm", found)
dispatcher.barrier()
print(dispatcher.rank(), dispatcher.size(), dispatcher.am_dispatcher(),
      dispatcher.broadcast({"from": dispatcher.rank()}))  # fmt: skip
