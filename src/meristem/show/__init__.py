"""What a person reads: words and tables about a network, progress while it is trained."""
