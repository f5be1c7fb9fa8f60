"""Which postures to take next."""
