"""Alembic's entry: the migrations are played on the connection that `storage.upgrade` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
