"""Messages inside a node: contents of caches, and the cost of copies through them."""
