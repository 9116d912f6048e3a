"""The steps by which the tables reached their present form, one file each; run by alembic."""
