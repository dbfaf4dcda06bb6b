"""Small programs for `pysmpi demo`, which copies them before it runs them."""
