"""`python -m pipeline` is `recordmill`, for where the command is not on the path."""

import sys

from pipeline.cli import main

if __name__ == "__main__":
    sys.exit(main())
