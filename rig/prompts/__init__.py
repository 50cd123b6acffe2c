"""The rig's own prompts: versioned templates, the same words in every dialect's system slot."""
