"""What foot wrenches alone say of mass and centre of mass, and whether they can be true."""
