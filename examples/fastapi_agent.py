"""`python fastapi_agent.py 9876`: the rig socket as a FastAPI route, /agent, beside whatever else the app serves.

Echoes; calls a tool that the caller writes by its name. Needs `pip install fastapi uvicorn websockets`.
"""

import json
import socket as sockets
import sys
from contextlib import suppress
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect

app = FastAPI()


@app.websocket("/agent")
async def agent(socket: WebSocket):
    await socket.accept()
    session = Session()
    with suppress(WebSocketDisconnect):
        while (frame := await socket.receive())["type"] != "websocket.disconnect":
            pcm = frame.get("bytes")
            for part in session.hear(pcm) if pcm is not None else session.take(json.loads(frame["text"])):
                await (socket.send_bytes(part) if isinstance(part, bytes) else socket.send_text(json.dumps(part)))
            if session.refused:
                await socket.close(4400, "version_mismatch")
                return


class Session:
    """One call; what its methods return is sent."""

    def __init__(self):
        self.tools, self.pcm, self.awaited, self.refused = [], b"", set(), False

    def hear(self, pcm):
        self.pcm += pcm
        return []

    def take(self, message):
        kind = message["type"]
        if kind == "session.setup":
            return self.set_up(message)
        if kind == "turn.text":
            return [*self.calls(message["text"]), {"type": "turn.end"}]
        if kind == "turn.commit":
            said, self.pcm = self.pcm, b""
            return [said, {"type": "reply.transcript", "text": "You said something."}, {"type": "turn.end"}]
        if kind == "tool.result":
            self.awaited.discard(message["call_id"])
            done = [{"type": "reply.text", "text": "That is done."}, {"type": "turn.end"}]
            return [] if self.awaited else done
        return []  # turn.start, turn.cancel (nothing runs), reply.truncate, session.close, and what is unknown

    def set_up(self, message):
        if 1 not in message.get("versions", [message["version"]]):
            self.refused = True
            told = {"code": "version_mismatch", "message": "this agent speaks version 1", "versions": [1]}
            return [{"type": "error", "kind": "configuration", **told}]
        self.tools = message["tools"]
        rate = message["audio"]["input_rate_hz"]
        return [{"type": "session.ready", "version": 1, "agent": "fastapi", "output_rate_hz": rate}]

    def calls(self, text):
        named = next((tool["name"] for tool in self.tools if tool["name"] in text), None)
        if named is None:
            return [{"type": "reply.text", "text": "You wrote: " + text}]
        call_id = uuid4().hex
        self.awaited.add(call_id)
        return [{"type": "tool.call", "call_id": call_id, "name": named, "arguments": {}}]


if __name__ == "__main__":
    listener = sockets.create_server(("127.0.0.1", int(sys.argv[1])))
    print(f"listening on port {listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
