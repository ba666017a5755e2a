"""Watch a run from its files alone, from another process, while it runs or later: in a terminal, or in a local browser."""
