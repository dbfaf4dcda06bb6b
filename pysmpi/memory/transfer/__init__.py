"""Messages inside a node: what the caches hold, and what copying through them takes."""
