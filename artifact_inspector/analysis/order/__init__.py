"""The program's rounds, where they stand at each stage, and the verdict on their order."""
