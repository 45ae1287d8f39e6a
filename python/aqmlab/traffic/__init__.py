"""Traffic without packets: what a class of users does, arrivals, captures."""
