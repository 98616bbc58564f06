/** One end of a connection that does what no HTTP client does: sends a part of a request, waits, reads nothing. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"

/** A connection to a server, from an address of this machine; it is reset with the scope. */
export const socketTo = (url: string, localAddress = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const { hostname, port } = new URL(url)
      const closed = Promise.withResolvers<string>()
      const came = Promise.withResolvers<void>()
      let text = ""
      const socket = Net.connect({ host: hostname, port: Number(port), localAddress, noDelay: true }, () => {
        resume(Effect.succeed({
          send: (part) => Effect.callback<void>((done) => void socket.write(part, () => done(Effect.void))),
          answer: Effect.promise(() => came.promise).pipe(Effect.map(() => text)),
          closed: Effect.promise(() => closed.promise),
          read: (reads) => Effect.sync(() => void (reads ? socket.resume() : socket.pause())),
          leave: Effect.sync(() => void socket.resetAndDestroy())
        }))
      })
      socket.on("error", () => {})
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        // a head is short
        if (text.length < 65_536 && /\r\n\r\n[^]/u.test(text)) came.resolve()
      })
      socket.on("close", () => {
        came.resolve()
        closed.resolve(text)
      })
    }),
    ({ leave }) => leave
  )

export interface Socket {
  /** Settles when the system has the bytes. */
  readonly send: (part: string) => Effect.Effect<void>
  /** What has come when the body of an answer begins, or when the connection closes. */
  readonly answer: Effect.Effect<string>
  /** All that came, when the connection closes. */
  readonly closed: Effect.Effect<string>
  /** Reads what comes, or nothing until told so. */
  readonly read: (reads: boolean) => Effect.Effect<void>
  readonly leave: Effect.Effect<void>
}

/** The head of a request with a JSON body. */
export const posting = (path: string, headers: { readonly [name: string]: string | number }): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${
    Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n`

/** The status of an answer, or 0 for none. */
export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 ([0-9]{3})/u.exec(answer)?.[1] ?? 0)
