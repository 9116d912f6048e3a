"""Alembic's entry point: runs the migrations on the connection that `storage.database.upgrade` passes."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
