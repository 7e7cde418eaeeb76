"""`python -m semisync` is the command `semisync`, for launchers that take a module: torchrun."""

import sys

from semisync.cli import main

if __name__ == "__main__":
    sys.exit(main())
