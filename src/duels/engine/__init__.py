"""The loop that plays a policy, its compilation by numba, threads and progress.

What makes every simulation and live study run fast belongs here; it knows no particular policy or problem.
"""
