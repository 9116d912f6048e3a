"""What do these counts show? Pure functions of a tally."""
