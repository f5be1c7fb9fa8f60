"""Command lines of com_simulation."""
