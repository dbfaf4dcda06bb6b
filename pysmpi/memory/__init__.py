"""The cost of a message inside a node with coherent caches."""
