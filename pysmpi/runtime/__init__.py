"""Programs: what a rank runs, and what it believes to have for itself."""
