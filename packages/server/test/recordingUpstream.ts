/** An HTTP server that answers as told and keeps every request it saw, byte for byte. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

export interface Reply {
  readonly status?: number
  readonly type?: string
  readonly body: string
}

export interface RecordingUpstream {
  readonly url: string
  readonly seen: Array<Seen>
  /** What the next requests are answered with. */
  respond: (request: Seen) => Reply
}

export const recordingUpstream = (respond: (request: Seen) => Reply) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly server: Http.Server; readonly upstream: RecordingUpstream }>((resume) => {
        const seen: Array<Seen> = []
        const server = Http.createServer((request, response) => {
          const chunks: Array<Buffer> = []
          request.on("data", (chunk: Buffer) => chunks.push(chunk))
          request.on("end", () => {
            const one: Seen = {
              method: request.method ?? "",
              path: request.url ?? "",
              headers: request.headers,
              body: Buffer.concat(chunks).toString("utf8")
            }
            seen.push(one)
            const reply = upstream.respond(one)
            response.writeHead(reply.status ?? 200, { "content-type": reply.type ?? "application/json" })
            response.end(reply.body)
          })
        })
        const upstream: RecordingUpstream = { url: "", seen, respond }
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          Object.assign(upstream, { url: `http://127.0.0.1:${port}` })
          resume(Effect.succeed({ server, upstream }))
        })
      }),
      ({ server }) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    ({ upstream }) => upstream
  )

/** Answers every JSON-RPC call with a raw result, under the id that it came with. */
export const rpcReply = (result: string) => (request: Seen): Reply => {
  const id = /"id":([^,}]+)/u.exec(request.body)?.[1] ?? "null"
  return { body: `{"jsonrpc":"2.0","id":${id},"result":${result}}` }
}
