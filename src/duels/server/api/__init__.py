"""The routes under `/api`, except those of voting links."""
