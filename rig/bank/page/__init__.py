"""What a bank holds, clip by clip, with gates and rulings: as rows for the terminal, and as one HTML file."""
