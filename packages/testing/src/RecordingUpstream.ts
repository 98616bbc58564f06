/** An HTTP server with configurable responses that records every request, byte for byte. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
  readonly bytes: Uint8Array
}

export interface StatusReply {
  readonly status?: number
  /** Content type. Default: JSON. `null` omits the header. */
  readonly type?: string | null
  readonly headers?: { readonly [name: string]: string }
  readonly body: string | Uint8Array
}

/**
 * How the server handles a request: with a response, by destroying the socket after the request was read, or without a
 * response.
 */
export type Reply = StatusReply | "hang-up" | "silence"

export interface RecordingUpstream {
  readonly url: string
  readonly seen: Array<Seen>
  /** Determines the reply to each later request. */
  respond: (request: Seen) => Reply
}

const write = (response: Http.ServerResponse, reply: Reply): void => {
  if (reply === "silence") return
  if (reply === "hang-up") {
    response.socket?.destroy()
    return
  }
  const type = reply.type === undefined ? "application/json" : reply.type
  response.writeHead(reply.status ?? 200, {
    ...(type === null ? {} : { "content-type": type }),
    ...reply.headers
  })
  response.end(reply.body)
}

/**
 * The address of this process's upstreams. A client of another test may still call a server that has stopped, and the
 * port of that server may be this process's now. On Linux, each process therefore has a loopback address of its own.
 */
const host = process.platform === "linux"
  ? `127.${(process.pid >> 16) + 1}.${(process.pid >> 8) & 255}.${process.pid & 255}`
  : "127.0.0.1"

export const recordingUpstream = (respond: (request: Seen) => Reply) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly server: Http.Server; readonly upstream: RecordingUpstream }>((resume) => {
        const seen: Array<Seen> = []
        const server = Http.createServer((request, response) => {
          const chunks: Array<Buffer> = []
          request.on("data", (chunk: Buffer) => chunks.push(chunk))
          request.on("end", () => {
            const bytes = Buffer.concat(chunks)
            const one: Seen = {
              method: request.method ?? "",
              path: request.url ?? "",
              headers: request.headers,
              body: bytes.toString("utf8"),
              bytes: new Uint8Array(bytes)
            }
            seen.push(one)
            write(response, upstream.respond(one))
          })
        })
        const upstream: RecordingUpstream = { url: "", seen, respond }
        server.listen(0, host, () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          Object.assign(upstream, { url: `http://${host}:${port}` })
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

let refusing = 0

/**
 * A base URL on whose port no server listens, another one each time. The system never assigns the port: a server of
 * another test would receive the requests. Port 1 is left out, because `fetch` refuses it without connecting.
 */
export const refusingUrl = Effect.sync(() => `http://127.0.0.1:${2 + refusing++ % 5}`)

/** Returns the raw text of a JSON-RPC request's ID. */
export const rpcId = (request: Seen): string => /"id":([^,}]+)/u.exec(request.body)?.[1] ?? "null"

/** Responds to every JSON-RPC call with the call's ID and a raw result. */
export const rpcReply = (result: string) => (request: Seen): StatusReply => ({
  body: `{"jsonrpc":"2.0","id":${rpcId(request)},"result":${result}}`
})

/** Responds to every JSON-RPC call with the call's ID and a raw error object. */
export const rpcFailure = (error: string) => (request: Seen): StatusReply => ({
  body: `{"jsonrpc":"2.0","id":${rpcId(request)},"error":${error}}`
})
