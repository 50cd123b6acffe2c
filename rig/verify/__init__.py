"""Whether a run is what it says it is: its bank, clips, frames and captures, checked against one another."""
