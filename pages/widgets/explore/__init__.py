"""The parts of Explore."""
