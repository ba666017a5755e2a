"""`python -m meristem`, from a source tree or installed."""

import sys

from meristem.cli import main

sys.exit(main())
