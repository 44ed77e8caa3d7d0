"""What pages share: choosing a checkpoint, choosing an input, and how a page begins."""
