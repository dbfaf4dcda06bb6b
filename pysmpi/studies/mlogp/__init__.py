"""Studies of the models of middleware costs."""

PAPER = "Tu et al., Accurate Analytical Models for Message Passing on Multi-core Clusters (2009)"
