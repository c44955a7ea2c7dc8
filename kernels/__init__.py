"""Reference kernels, one per module, as a user would write them.

Importing this package imports no Triton; importing a kernel's module does. Each module holds the
kernel, a wrapper that launches it on torch tensors, `REFERENCE`: how it is compiled with no GPU, and
`workload`: a launch of the size that it is measured at.
"""
