"""What a model reads: a person's columns, and the numbers that a network is given."""
