"""Command lines of com_model."""
