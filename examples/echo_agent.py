"""`python echo_agent.py 9876`: a voice agent that calls the first tool when the caller is loud, else echoes.

Calls a tool that the caller writes by its name, too. Needs `pip install websockets`.
"""

import array
import asyncio
import json
import sys
from uuid import uuid4

from websockets.asyncio.server import serve


async def agent(socket):
    tools, heard, awaited = [], b"", set()
    async for message in socket:
        control, answer = {"type": "audio"} if isinstance(message, bytes) else json.loads(message), []
        if control["type"] == "audio":
            heard += message
        elif control["type"] == "session.setup" and 1 not in control.get("versions", [control["version"]]):
            fault = {"code": "version_mismatch", "message": "this agent speaks version 1", "versions": [1]}
            await socket.send(json.dumps({"type": "error", "kind": "configuration", **fault}))
            await socket.close(4400, "version_mismatch")
            return
        elif control["type"] == "session.setup":
            tools, rate = control["tools"], control["audio"]["input_rate_hz"]
            answer = [{"type": "session.ready", "version": 1, "agent": "echo", "output_rate_hz": rate}]
        elif control["type"] == "turn.text":
            named = [tool for tool in tools if tool["name"] in control["text"]]
            answer = calls(named[:1]) or [{"type": "reply.text", "text": "You wrote: " + control["text"]}]
            answer += [{"type": "turn.end"}]
        elif control["type"] == "turn.commit":
            samples, heard = array.array("h", heard), b""
            if tools and sum(s * s for s in samples) > 3000**2 * len(samples):
                answer = calls(tools[:1])
            else:
                answer = [samples.tobytes(), {"type": "reply.transcript", "text": "You said something."}]
            answer += [{"type": "turn.end"}]
        elif control["type"] == "tool.result":
            awaited.discard(control["call_id"])
            answer = [] if awaited else [{"type": "reply.text", "text": "That is done."}, {"type": "turn.end"}]
        for part in answer:
            if isinstance(part, dict) and part["type"] == "tool.call":
                awaited.add(part["call_id"])
            await socket.send(part if isinstance(part, bytes) else json.dumps(part))


def calls(tools):
    return [{"type": "tool.call", "call_id": uuid4().hex, "name": tool["name"], "arguments": {}} for tool in tools]


async def main():
    async with serve(agent, "127.0.0.1", int(sys.argv[1])) as server:
        print(f"listening on port {server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


asyncio.run(main())
