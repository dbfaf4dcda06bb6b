"""What one message between two hosts costs: a registry of models."""
