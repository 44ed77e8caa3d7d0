"""The parts of Train."""
