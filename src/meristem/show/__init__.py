"""Text and drawings for people: descriptions, tables and progress on a terminal, drawings and cards in HTML."""
