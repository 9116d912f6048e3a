"""Requests and replies: errors, limits, middleware."""
