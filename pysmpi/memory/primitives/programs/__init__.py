"""The primitives that ship: each file makes the program of its name."""
