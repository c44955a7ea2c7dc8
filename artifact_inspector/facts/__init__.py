"""What is known of a kernel, and the analyses that find it."""
