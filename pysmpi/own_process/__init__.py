"""pysmpi's own process: its descriptors, signals, children and end."""
