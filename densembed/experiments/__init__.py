"""The paper's experiments and further ones, each run by one command."""
