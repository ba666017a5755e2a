"""`python -m meristem`, from a source tree or installed."""

import sys

from meristem.commands.main import main

sys.exit(main())
