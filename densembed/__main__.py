"""`python -m densembed`."""

import sys

from densembed.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
