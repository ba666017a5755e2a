"""The commands of `meristem`, a module each; `add(commands)` adds the parser of its commands."""
