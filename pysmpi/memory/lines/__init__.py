"""The line-cost model: messages and collectives inside a node as reads of cache lines.

Every load and store first reads a line, at a cost that depends on the place and the state of the
line. These few costs determine the ping-pong of one line and of many (`pingpong`), the cost of a
line that many cores read at the same time (`contention`), and the best and the worst case of
collectives tuned with them (`broadcast`, `barrier`, `reduction`, over the trees of `trees`).

Times are seconds, sizes are lines unless a name says bytes.

Source: Ramos and Hoefler, "Modeling communication in cache-coherent SMP systems: a case-study
with Xeon Phi" (HPDC 2013). Equation numbers in this package are theirs.
"""
