"""Documents: what a page says as a sequence of blocks, and the writers that walk them."""
