"""Let a machine answer."""
