"""Studies that tune parameters."""
