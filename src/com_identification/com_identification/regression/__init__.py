"""Masses and centres of mass by linear regression on static postures."""
