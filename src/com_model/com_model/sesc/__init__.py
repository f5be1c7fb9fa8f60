"""Statically equivalent serial chains (SESC)."""

from com_model.sesc.sesc import Sesc as Sesc
