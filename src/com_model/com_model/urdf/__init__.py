"""URDFs: reading, cleaning, editing, auditing."""
