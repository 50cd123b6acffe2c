"""What is done with single cassettes: shown, cut short for a bug report, played to a client like the vendor did."""
