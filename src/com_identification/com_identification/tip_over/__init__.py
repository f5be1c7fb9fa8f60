"""Tip-over tests: joint angles at which a standing robot tips over, and fits to them."""
