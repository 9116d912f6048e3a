"""Which answers count, and who gave them."""
