/**
 * Connects to a port every few milliseconds, even before a server listens on it, and counts the connections by result.
 */
import * as Effect from "effect/Effect"
import { randomInt } from "node:crypto"
import * as Net from "node:net"

/**
 * A free port of 127.0.0.1.
 *
 * The port is below the range of ephemeral ports, so that no other test gets the port before the server of this test
 * listens on it.
 */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const port = randomInt(10_000, 32_000)
  const probe = Net.createServer()
  probe.once("error", () => resume(freePort))
  probe.listen(port, "127.0.0.1", () => probe.close(() => resume(Effect.succeed(port))))
})

/** The number of connections, by result. */
export interface Polled {
  /** Number of connections that were refused while the port was closed. */
  readonly refused: number
  /** Number of responses, by HTTP status. */
  readonly answered: { readonly [status: string]: number }
  /** Number of connections that were accepted, and closed without a response. */
  readonly unanswered: number
}

export interface PortPoll {
  /** Waits for 20 more responses, stops opening connections, and waits until every open connection is closed. */
  readonly end: Effect.Effect<Polled>
  readonly stop: () => void
}

const polling = (port: number, requests: ReadonlyArray<string>): PortPoll => {
  const open = new Set<Net.Socket>()
  const answered: Record<string, number> = {}
  const counts = { made: 0, refused: 0, answers: 0, unanswered: 0 }
  let changed = Promise.withResolvers<void>()
  const connect = () => {
    const request = requests[counts.made++ % requests.length] ?? ""
    let text = ""
    let isAccepted = false
    const socket = Net.connect({ host: "127.0.0.1", port, noDelay: true }, () => {
      isAccepted = true
      socket.write(request)
    })
    open.add(socket)
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1")
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      open.delete(socket)
      const status = /^HTTP\/1\.1 (?<status>\d{3}) /u.exec(text)?.groups?.["status"]
      if (status === undefined) counts[isAccepted ? "unanswered" : "refused"] += 1
      else {
        counts.answers += 1
        answered[status] = (answered[status] ?? 0) + 1
      }
      changed.resolve()
      changed = Promise.withResolvers()
    })
  }
  const timer = setInterval(connect, 5)
  const until = (isOver: () => boolean) =>
    Effect.promise(async () => {
      while (!isOver()) await changed.promise
    })
  const stop = () => clearInterval(timer)
  return {
    stop,
    end: Effect.gen(function*() {
      const wanted = counts.answers + 20
      yield* until(() => counts.answers >= wanted)
      stop()
      yield* until(() => open.size === 0)
      return { refused: counts.refused, answered, unanswered: counts.unanswered }
    })
  }
}

/**
 * Opens a connection every 5 milliseconds until the scope closes. Sends the requests in turn, one on each connection.
 */
export const portPoll = (port: number, requests: ReadonlyArray<string>) =>
  Effect.acquireRelease(Effect.sync(() => polling(port, requests)), ({ stop }) => Effect.sync(stop))
