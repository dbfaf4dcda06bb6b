"""simplempi's two examples: a parallel loop, and lists that are scattered."""

from __future__ import annotations

import simplempi
from simplempi.parfor import parfor, pprint

for i in parfor(list(range(10))):
    pprint(f"{i}**2 = {i**2}")
smpi = simplempi.simpleMPI()
mine = smpi.scatterList(range(20))
smpi.pprint(mine)
