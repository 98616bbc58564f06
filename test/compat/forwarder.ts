/** An HTTP server that hands every request on and keeps what went through, both ways. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import type { Exchange } from "./recording.ts"

export interface Forwarder {
  readonly url: string
  /** Those that were answered, or broken off, in the order of the requests. */
  readonly exchanges: ReadonlyArray<Exchange>
  /** How many requests came, answered or not. */
  readonly asked: number
}

/** Headers of one hop, and those that differ from run to run. */
const ofTheHop = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "keep-alive",
  "traceparent",
  "b3"
])

const kept = (headers: Http.IncomingHttpHeaders): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => ofTheHop.has(name) ? [] : [[name, String(value)]])
  )

const listen = (server: Http.Server) =>
  Effect.callback<string>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(`http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`))
    })
  })

/** Hands on to the paths below a base URL. */
const below = (target: string) => {
  const base = new URL(target).pathname.replace(/\/$/u, "")
  return (path: string) => base + path
}

/** Hands on to `target`, at the path that `pathOf` makes of a request's; a target that is gone is a closed connection. */
export const forwarder = (target: string, pathOf: (path: string) => string = below(target)) =>
  Effect.gen(function*() {
    const seats: Array<Exchange | undefined> = []
    const agent = new Http.Agent({ keepAlive: true })
    const server = Http.createServer((request, response) => {
      const asked: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => asked.push(chunk))
      request.on("end", () => {
        const body = Buffer.concat(asked)
        const path = request.url ?? "/"
        const method = request.method ?? "GET"
        // requests that overlap can be answered the other way round
        const seat = seats.push(undefined) - 1
        const { "accept-encoding": _, connection: __, ...headers } = request.headers
        const keep = (answer: Exchange["answer"]) => {
          seats[seat] = { method, path, headers: kept(request.headers), body: body.toString("utf8"), answer }
        }
        const breakOff = () => {
          keep({ status: 0, type: "", body: "" })
          response.destroy()
        }
        const onward = Http.request(new URL(pathOf(path), target), { method, headers, agent }, (incoming) => {
          const answered: Array<Buffer> = []
          incoming.on("data", (chunk: Buffer) => answered.push(chunk))
          incoming.on("error", breakOff)
          incoming.on("end", () => {
            const answer = Buffer.concat(answered)
            const status = incoming.statusCode ?? 0
            keep({ status, type: incoming.headers["content-type"] ?? "", body: answer.toString("utf8") })
            const { "transfer-encoding": ___, ...answerHeaders } = incoming.headers
            response.writeHead(status, answerHeaders).end(answer)
          })
        })
        onward.on("error", breakOff)
        onward.end(body)
      })
    })
    const url = yield* Effect.acquireRelease(listen(server), () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
        agent.destroy()
      }))
    const running: Forwarder = {
      url,
      get asked() {
        return seats.length
      },
      get exchanges() {
        return seats.filter((exchange) => exchange !== undefined)
      }
    }
    return running
  })
