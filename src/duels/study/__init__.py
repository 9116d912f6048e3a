"""Live studies: which arms to compare next, what the answers say so far, and when they are enough."""
