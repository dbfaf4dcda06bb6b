"""State that a process owns, kept for each rank in one interpreter."""
