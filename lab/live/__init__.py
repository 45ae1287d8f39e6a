"""The simulator against this machine's kernel."""
