"""What captured calls and answers are worth against a bank: no network, no statistics."""
