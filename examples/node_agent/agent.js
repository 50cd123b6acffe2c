// `npm install`, then `node agent.js 9876`: the rig socket in Node. Echoes; calls a tool that the caller writes by name.
import { randomUUID } from "node:crypto";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]) });
server.on("listening", () => console.log(`listening on port ${server.address().port}`));

server.on("connection", (socket) => {
  let tools = [];
  let heard = [];
  const awaited = new Set();
  const send = (message) => socket.send(JSON.stringify(message));
  const end = () => send({ type: "turn.end" });

  const takes = {
    "session.setup": ({ version, versions = [version], tools: offered, audio }) => {
      if (!versions.includes(1)) {
        const message = "this agent speaks version 1";
        send({ type: "error", kind: "configuration", code: "version_mismatch", message, versions: [1] });
        return socket.close(4400, "version_mismatch");
      }
      tools = offered;
      send({ type: "session.ready", version: 1, agent: "node", output_rate_hz: audio.input_rate_hz });
    },
    "turn.text": ({ text }) => {
      const named = tools.find(({ name }) => text.includes(name));
      if (named) {
        const call_id = randomUUID();
        awaited.add(call_id);
        send({ type: "tool.call", call_id, name: named.name, arguments: {} });
      } else {
        send({ type: "reply.text", text: `You wrote: ${text}` });
      }
      end();
    },
    "turn.commit": () => {
      socket.send(Buffer.concat(heard), { binary: true });
      heard = [];
      send({ type: "reply.transcript", text: "You said something." });
      end();
    },
    "tool.result": ({ call_id }) => {
      awaited.delete(call_id);
      if (awaited.size) return;
      send({ type: "reply.text", text: "That is done." });
      end();
    },
  };

  socket.on("message", (data, isBinary) => {
    if (isBinary) return heard.push(data);
    const message = JSON.parse(data);
    takes[message.type]?.(message); // all else is ignored: turn.start, turn.cancel (nothing runs), reply.truncate, …
  });
  socket.on("error", (error) => console.error(error.message));
});
