"""``python -m engram``: the command line of the interpreter at hand."""

import sys

from engram.cli.main import main

sys.exit(main())
