"""Where studies are kept: the database, its tables and migrations, transactions and connections.

Everything that knows SQL dialects or transactions belongs here; what the rows mean is in `study`.
"""
