/** Both ends of a connection: one that a client keeps, and a server that holds its answers back. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"

export interface Said {
  readonly status: number
  readonly body: string
  /** Whether the connection had served a request before. */
  readonly reused: boolean
}

/** One kept-alive connection to a server; requests on it wait for each other. */
export const connection = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new Http.Agent({ keepAlive: true, maxSockets: 1 })),
    (agent) => Effect.sync(() => agent.destroy())
  ),
  (agent) => (url: string, body?: string) =>
    Effect.callback<Said, Error>((resume) => {
      const request = Http.request(url, {
        agent,
        method: body === undefined ? "GET" : "POST",
        headers: body === undefined ? {} : { "content-type": "application/json" }
      }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString("utf8")
        })
        response.on("end", () => {
          resume(Effect.succeed({ status: response.statusCode ?? 0, body: text, reused: request.reusedSocket }))
        })
      })
      request.on("error", (error) => resume(Effect.fail(error)))
      request.end(body)
    })
)

export interface HeldUpstream {
  readonly url: string
  /** Settles when the first request has come. */
  readonly asked: Promise<void>
  /** Answers every request that has come and will come. */
  readonly release: (body: string) => void
}

/** A server that answers nobody until it is told what. */
export const heldUpstream = Effect.acquireRelease(
  Effect.callback<HeldUpstream & { readonly close: () => void }>((resume) => {
    const asked = Promise.withResolvers<void>()
    const told = Promise.withResolvers<string>()
    const server = Http.createServer((request, response) => {
      request.resume().on("end", () => {
        asked.resolve()
        void told.promise.then((body) => response.writeHead(200, { "content-type": "application/json" }).end(body))
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      resume(Effect.succeed({
        url: `http://127.0.0.1:${port}`,
        asked: asked.promise,
        release: told.resolve,
        close: () => {
          server.closeAllConnections()
          server.close()
        }
      }))
    })
  }),
  ({ close }) => Effect.sync(close)
)
