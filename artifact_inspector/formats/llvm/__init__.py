"""LLVM IR as Triton's backends print it."""
