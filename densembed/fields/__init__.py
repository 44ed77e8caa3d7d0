"""Receptive fields of trained models as arrays, and measures of them."""
