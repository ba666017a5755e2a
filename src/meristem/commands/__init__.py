"""The commands of `meristem`, a module each; parsing.py names them."""
