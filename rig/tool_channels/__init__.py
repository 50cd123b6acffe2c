"""Where tool calls are seen beside an agent's connection: a webhook that the rig serves, or a log that it reads."""
