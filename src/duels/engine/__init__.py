"""The loop that plays a policy, its compilation by numba, threads and progress.

Whatever makes simulations and live studies fast belongs here; nothing about a particular policy or problem does.
"""
