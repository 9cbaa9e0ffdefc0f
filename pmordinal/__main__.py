"""``python -m pmordinal``: the command line."""

import sys

from pmordinal.cli import main

if __name__ == "__main__":
    sys.exit(main())
