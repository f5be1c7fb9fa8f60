"""Command lines of com_estimation."""
