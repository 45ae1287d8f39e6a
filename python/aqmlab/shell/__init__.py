"""Real programs behind any queue: the link, the run, the users, the display."""
