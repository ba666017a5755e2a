"""`python -m meristem`, from a source tree or installed."""

from meristem.commands.entry import main

main()
