"""The mathematics of Sections 2 and 3 of the paper, as functions on tensors."""
