"""The uploaded photograph and what was found in it."""
