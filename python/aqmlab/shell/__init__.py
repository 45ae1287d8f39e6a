"""Any real program behind any queue: its link, its run, its users, what it shows."""
