"""What a discipline's own paper promises: a file for each, its runs, its verdicts."""
