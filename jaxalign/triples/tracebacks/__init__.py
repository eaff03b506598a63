"""How a triple is traced back: from filled boxes to a path, by one of five names.

=================  ======================  ============================================
``store``          ``stored_box``          the choices of all cells, and a walk
``split``          ``divide_and_conquer``  halves the longest sequence until boxes fit
``bt1, bt2, bt3``  ``bt1_bt2_bt3``         Li, Ranka and Sahni: chunks whose faces stay,
                                           filled again along the path
=================  ======================  ============================================

``chunk_grid`` is the geometry of these chunks, and their bytes; ``chunk_faces`` holds
the arrays of their faces, and the programs that fill chunks from them.
"""
