"""What links look like: shapes of a URDF, the mesh files that they name."""
