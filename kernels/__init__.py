"""Reference kernels, one per module, as a user would write them.

Importing this package imports no Triton; importing a kernel's module does. Each module holds the
kernel, a wrapper that launches it on torch tensors, `REFERENCE` with its compile arguments, and
`workload`, which returns the launch that is measured.
"""
