"""SMPI's own tests and examples in C, with the outputs that SimGrid publishes."""
