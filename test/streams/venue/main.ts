/**
 * A fake of the venue, as a process of its own that shares no code with the gateway: the WebSocket at `/ws`, queries at
 * `/info`, actions at `/exchange`, and commands at `/control`. It prints where it listens.
 *
 * It behaves as the venue's documents and published probes say. The same seed and the same commands give the same frames.
 */
import * as http from "node:http"
import { WebSocketServer } from "ws"
import { type Command, type Condition, Control, type RestFault } from "./control.ts"
import { actionWeight, exchange, info, queryWeight } from "./rest.ts"
import { isObject } from "./subscriptions.ts"

const control = new Control(Number(process.argv[2] ?? 1))

const bodyOf = async (request: http.IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

const reply = (response: http.ServerResponse, status: number, text: string): void => {
  if (response.destroyed) return
  response.writeHead(status, { "content-type": "application/json" }).end(text)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Answers as the fault says, or as it would without. */
const answer = (
  response: http.ServerResponse,
  fault: RestFault | undefined,
  { body, status }: { readonly status: number; readonly body: unknown }
): void => {
  const text = JSON.stringify(body)
  const hangUp = (): void => void response.socket?.destroy()
  switch (fault?.mode) {
    case "silence":
      return control.hold(() => {}, hangUp)
    case "hang-up":
      return hangUp()
    case "hold":
      return control.hold(() => reply(response, status, text), hangUp)
    case "status":
      return reply(response, fault.status, fault.body ?? "null")
    case undefined:
      return reply(response, status, text)
  }
}

const onInfo = (text: string, response: http.ServerResponse): void => {
  const { connections, rest } = control
  const query = parsed(text)
  connections.queries.push({ via: "http", query })
  const type = isObject(query) ? String(query["type"]) : ""
  const failed = { status: 422, body: "Failed to deserialize the JSON body into the target type" }
  const result = info(connections.world, query) ?? failed
  connections.weigh(queryWeight(query, result.body))
  answer(response, rest[type] ?? rest["*"], result)
}

const onExchange = (text: string, response: http.ServerResponse): void => {
  const { connections, rest } = control
  const body = parsed(text)
  if (!isObject(body)) return reply(response, 422, JSON.stringify("Failed to parse"))
  const fault = rest["exchange"]
  connections.weigh(actionWeight(body["action"]))
  connections.actions.push({ via: "http", text, nonce: Number(body["nonce"]) })
  // an action that is refused is not carried out; one whose reply is lost is
  if (fault?.mode === "status") return answer(response, fault, { status: 200, body: null })
  return answer(response, fault, {
    status: 200,
    body: exchange(connections.world, connections.trader, body["action"])
  })
}

type Message = Command | Condition

const isMessages = (value: unknown): value is ReadonlyArray<Message> =>
  Array.isArray(value) && value.every((item) => isObject(item) && ("do" in item || "until" in item))

const onControl = async (text: string, response: http.ServerResponse): Promise<void> => {
  const messages = parsed(text)
  if (!isMessages(messages)) return reply(response, 400, JSON.stringify("not a list of commands"))
  const results: Array<unknown> = []
  for (const message of messages) {
    if ("until" in message) await control.wait(message)
    else results.push(control.run(message) ?? null)
    control.changed()
  }
  return reply(response, 200, JSON.stringify(results))
}

const serve = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
  const text = await bodyOf(request)
  const routes: Readonly<Record<string, () => Promise<void> | void>> = {
    "/control": () => onControl(text, response),
    "/info": () => onInfo(text, response),
    "/exchange": () => onExchange(text, response)
  }
  const route = request.method === "POST" ? routes[request.url ?? ""] : undefined
  if (route === undefined) return reply(response, 404, "null")
  await route()
  control.changed()
}

const server = http.createServer((request, response) => {
  serve(request, response).catch((error: unknown) => reply(response, 500, JSON.stringify(String(error))))
})

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })

server.on("upgrade", (request, socket, head) => {
  const refused = request.url === "/ws" ? control.connections.refusal() : 404
  if (refused !== undefined) {
    socket.end(`HTTP/1.1 ${refused} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
    return
  }
  sockets.handleUpgrade(request, socket, head, (accepted) => {
    control.connections.accept(accepted)
    accepted.on("message", () => control.changed())
    accepted.on("close", () => control.changed())
    control.changed()
  })
})

// ends with the process that started it
process.on("disconnect", () => process.exit())

server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  console.log(`listens on http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`)
})
