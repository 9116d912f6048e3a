"""The Gaussian process that learns from duels."""
