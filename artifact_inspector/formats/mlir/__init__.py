"""The tensor-level IR that Triton prints: TTIR and TTGIR."""
