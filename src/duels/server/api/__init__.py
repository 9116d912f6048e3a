"""The routes under `/api`."""
