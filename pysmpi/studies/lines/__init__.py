"""Studies of the model of cache lines on the Xeon Phi."""

PAPER = "Ramos, Hoefler, Modeling Communication in Cache-Coherent SMP Systems (2013)"
