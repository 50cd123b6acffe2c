"""`python echo_agent.py 9876`: a voice agent that calls the first tool when the caller is loud, else echoes."""

import array
import asyncio
import json
import sys
from uuid import uuid4

from websockets.asyncio.server import serve


async def agent(socket):
    tools, heard = [], b""
    async for message in socket:
        control, answer = {"type": "audio"} if isinstance(message, bytes) else json.loads(message), []
        if control["type"] == "audio":
            heard += message
        elif control["type"] == "session.setup":
            tools, rate = control["tools"], control["audio"]["input_rate_hz"]
            answer = [{"type": "session.ready", "version": 1, "agent": "echo", "output_rate_hz": rate}]
        elif control["type"] == "turn.text":
            answer = [{"type": "reply.text", "text": "You wrote: " + control["text"]}, {"type": "turn.end"}]
        elif control["type"] == "turn.commit":
            samples, heard = array.array("h", heard), b""
            if tools and sum(s * s for s in samples) > 3000**2 * len(samples):
                answer = [{"type": "tool.call", "call_id": uuid4().hex, "name": tools[0]["name"], "arguments": {}}]
            else:
                answer = [samples.tobytes(), {"type": "reply.transcript", "text": "You said something."}]
            answer += [{"type": "turn.end"}]
        for part in answer:
            await socket.send(part if isinstance(part, bytes) else json.dumps(part))


async def main():
    async with serve(agent, "127.0.0.1", int(sys.argv[1])) as server:
        print(f"listening on port {server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


asyncio.run(main())
