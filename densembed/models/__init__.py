"""The networks of Section 4 of the paper, by name."""
