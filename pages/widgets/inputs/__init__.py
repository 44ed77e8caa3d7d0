"""Choosing the input and the model."""
