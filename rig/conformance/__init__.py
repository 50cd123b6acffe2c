"""Conformance of an agent to the rig socket (docs/bring-your-own-agent.md): short conversations with it, judged.

Not here: what the agent is worth; only whether the rig and it will understand each other.
"""
