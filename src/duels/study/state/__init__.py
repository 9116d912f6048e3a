"""What is the study's state after these events? No database."""
