"""The line-cost model: messages and collectives inside a node as reads of cache lines.

Every load and store first reads a line, at a cost that depends on where the line is and in which
state. From these few costs follow the ping-pong of one line and of many (`pingpong`), what a line
costs that many read at once (`contention`), and the best and the worst case of the collectives
that are tuned with them (`broadcast`, `barrier`, `reduction`, over the trees of `trees`).

Times are seconds, sizes are lines unless a name says bytes.

Source: Ramos and Hoefler, "Modeling communication in cache-coherent SMP systems: a case-study
with Xeon Phi" (HPDC 2013). Equation numbers in this package are theirs.
"""
