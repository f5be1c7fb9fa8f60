"""Where a robot can bring its centre of mass ([Cotton] VI.A)."""
