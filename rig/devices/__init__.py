"""Sound devices: how late what is played on one is heard on another."""
