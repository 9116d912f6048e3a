"""The server: an HTTP API, live pages, and voting pages.

What speaks HTTP belongs here. Rules about studies and votes belong to `study`, which raises errors that `errors.py`
turns into answers.
"""
