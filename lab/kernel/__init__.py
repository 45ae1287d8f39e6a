"""This machine's kernel as a judge of the profile ``linux``: packet scripts are played to it."""
