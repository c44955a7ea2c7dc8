"""The loads in flight at each point, what each wait leaves in flight, and the pipeline depth of loops."""
