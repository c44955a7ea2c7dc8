"""Diagnosis: which causes take the predicted time of a launch, by source line, and what helps."""
