"""Training: a config and a data set in, events and checkpoints out."""
