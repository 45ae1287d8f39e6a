"""What is simulated: scenario files, what may stand in them, variations."""
