"""`python -m pysmpi`: the command line."""

from pysmpi.cli.main import main

if __name__ == "__main__":
    main()
