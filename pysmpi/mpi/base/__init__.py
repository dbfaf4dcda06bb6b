"""What every chapter uses: ranks, handles, constants, errors, attributes, info, status."""
