/** A TCP server that records request bodies byte for byte, and handles each request as configured. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"

/**
 * How the server handles a request: with a body and HTTP 200, without any response, or with a connection reset after
 * the request body.
 *
 * A response with `until` is delayed until this promise settles.
 */
export type Treatment = { readonly body: string; readonly until?: Promise<void> } | "silence" | "reset"

export interface RawUpstream {
  readonly url: string
  readonly bodies: Array<string>
  /** Returns the number of bytes received on all connections. */
  readonly bytes: () => number
  treat: (body: string) => Treatment
  /** Succeeds when `count` bodies were received. */
  readonly received: (count: number) => Effect.Effect<void>
}

const wholeBody = (text: string): string | undefined => {
  const end = text.indexOf("\r\n\r\n")
  const length = Number(/^content-length: (\d+)/imu.exec(text.slice(0, Math.max(0, end)))?.[1] ?? Number.NaN)
  return end >= 0 && text.length >= end + 4 + length ? text.slice(end + 4) : undefined
}

const formatResponse = (body: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`

export const rawUpstream = (treat: (body: string) => Treatment) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly upstream: RawUpstream; readonly close: () => void }>((resume) => {
        const sockets = new Set<Net.Socket>()
        const waiting: Array<() => void> = []
        let bytes = 0
        const server = Net.createServer((socket) => {
          sockets.add(socket)
          let text = ""
          socket.on("error", () => {})
          socket.on("data", (chunk: Buffer) => {
            bytes += chunk.length
            text += chunk.toString("latin1")
            const body = wholeBody(text)
            if (body === undefined) return
            upstream.bodies.push(body)
            text = ""
            const treatment = upstream.treat(body)
            if (treatment === "reset") socket.resetAndDestroy()
            else if (treatment !== "silence") {
              const respond = () => socket.end(formatResponse(treatment.body))
              if (treatment.until === undefined) respond()
              else void treatment.until.then(respond)
            }
            for (const look of waiting) look()
          })
        })
        const upstream: RawUpstream = {
          url: "",
          bodies: [],
          bytes: () => bytes,
          treat,
          received: (count) =>
            Effect.callback((done) => {
              const look = () => upstream.bodies.length >= count ? done(Effect.void) : undefined
              waiting.push(look)
              look()
            })
        }
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          Object.assign(upstream, { url: `http://127.0.0.1:${port}` })
          resume(Effect.succeed({
            upstream,
            close: () => {
              for (const socket of sockets) socket.destroy()
              server.close()
            }
          }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ upstream }) => upstream
  )
