"""A run: options, the job and its interpreter."""
