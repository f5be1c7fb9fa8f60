"""The report of an identification: one HTML page that needs no other file."""
