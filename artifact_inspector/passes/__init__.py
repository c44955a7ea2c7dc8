"""Which pass of the compiler changed a kernel, and which release.

A kernel is compiled with its IR written after every pass; each text is read with the readers that read a
cache, and what a pass changed is what two neighbouring texts tell differently.
"""
