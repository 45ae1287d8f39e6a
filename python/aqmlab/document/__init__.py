"""Documents: a page as a sequence of blocks, and a writer for each format."""
