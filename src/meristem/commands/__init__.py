"""The commands of `meristem`, one file for each kind; each has `add(commands)`, which tells the command line of them."""
