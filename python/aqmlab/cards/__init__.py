"""Report cards of queue disciplines, and suites of tests as tables."""
