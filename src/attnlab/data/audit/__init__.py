"""What a corpus is made of, and what in it would ruin a comparison."""
