"""The server: an HTTP API, live pages, and an arena where people vote."""
