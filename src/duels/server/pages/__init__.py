"""The dashboard, the voting page and the page of results."""
