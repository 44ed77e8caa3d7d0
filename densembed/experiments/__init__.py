"""The paper's results and further experiments, each made by one command."""
