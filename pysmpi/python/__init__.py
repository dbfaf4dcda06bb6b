"""The Python that runs pysmpi: frames, installed packages, records."""
