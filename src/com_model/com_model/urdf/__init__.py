"""URDFs: reading, editing, auditing."""
