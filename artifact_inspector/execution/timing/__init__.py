"""What launches would keep busy and wait for: the order in which they finish, not their microseconds."""
