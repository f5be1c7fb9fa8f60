"""Control of the centre of mass of a standing robot."""
