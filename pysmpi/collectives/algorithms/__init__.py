"""The algorithms, one or two modules for each operation; the registry loads them on first use."""
