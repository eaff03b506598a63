"""The mesh of devices of the program that calls."""

import jax


def ambient():
    """The mesh of ``with jax.set_mesh(mesh):``, None outside of one."""
    mesh = jax.sharding.get_mesh()
    return None if mesh.empty else mesh
