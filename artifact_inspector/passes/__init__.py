"""Find the compiler pass, and the Triton release, that changed a kernel.

A kernel is compiled with an IR dump at every pass. The dumps are parsed like the stages of a cache, and a
pass changed the facts that differ between the dumps before and after it.
"""
