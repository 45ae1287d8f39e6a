"""Traffic before any queue: descriptions of classes, arrivals, captures."""
