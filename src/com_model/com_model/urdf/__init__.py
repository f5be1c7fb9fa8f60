"""URDFs: reading, editing."""
