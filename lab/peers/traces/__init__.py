"""What ns-2 and ns-3 do with short lists of arrivals and drops: data of the crates' tests."""
