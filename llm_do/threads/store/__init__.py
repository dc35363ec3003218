"""What stores keep and what they have to do, whatever they keep it in."""
