"""The rounds of the program, their location at each stage, and the verdict on their order."""
