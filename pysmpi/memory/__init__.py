"""What a message inside a node costs: caches that keep each other coherent."""
