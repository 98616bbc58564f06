/** A transport whose upstream is the test: it sees what was sent, and says what is received. */
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import type { Incoming, StreamProtocol, Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"

export interface ScriptedConnection {
  readonly address: string
  readonly sent: Array<string>
  isOpen: boolean
  readonly push: (...texts: ReadonlyArray<string>) => void
  readonly close: (code?: number) => void
}

export interface ScriptedSockets {
  readonly transport: SocketTransport["Service"]
  readonly connections: Array<ScriptedConnection>
  /** Addresses that cannot be reached. */
  readonly unreachable: Set<string>
  /** The open connections. */
  readonly open: () => ReadonlyArray<ScriptedConnection>
}

export const scriptedSockets = (): ScriptedSockets => {
  const connections: Array<ScriptedConnection> = []
  const unreachable = new Set<string>()
  const transport = SocketTransport.of({
    open: Effect.fnUntraced(function*(redacted) {
      const address = Redacted.value(redacted)
      if (unreachable.has(address)) return yield* new SocketLost({ code: 1006, reason: "refused" })
      const texts = yield* Queue.unbounded<string, SocketLost>()
      const connection: ScriptedConnection = {
        address,
        sent: [],
        isOpen: true,
        push: (...pushed) => {
          for (const text of pushed) Queue.offerUnsafe(texts, text)
        },
        close: (code = 1006) => {
          connection.isOpen = false
          Queue.failCauseUnsafe(texts, Cause.fail(new SocketLost({ code, reason: "" })))
        }
      }
      connections.push(connection)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          connection.isOpen = false
        })
      )
      return { receive: Queue.takeAll(texts), send: (text) => Effect.sync(() => void connection.sent.push(text)) }
    })
  })
  return { transport, connections, unreachable, open: () => connections.filter(({ isOpen }) => isOpen) }
}

/**
 * A protocol of words: `+key` and `-key` subscribe and end, `ok route` and `over route` confirm, `no route` refuses, `route=data`
 * is data, and `full users 3` names a limit.
 */
export const wordProtocol: StreamProtocol = {
  ping: "ping",
  read: (text): Incoming => {
    const [word = "", rest = "", number = ""] = text.split(" ")
    if (word === "ok") return { kind: "subscribed", route: rest }
    if (word === "over") return { kind: "unsubscribed", route: rest }
    if (word === "no") return { kind: "refused", route: rest, message: text }
    if (word === "full" && (rest === "users" || rest === "subscriptions" || rest === "messages")) {
      return { kind: "limit", of: rest, limit: Number(number), message: text }
    }
    if (word === "new") return { kind: "unknown", channel: rest }
    const end = text.indexOf("=")
    return end < 0 ? { kind: "noise" } : { kind: "data", route: text.slice(0, end) }
  },
  refusal: (of, limit) => `at most ${limit} ${of}`,
  invalid: ({ key }) => `invalid ${key}`
}

/** Rows of numbers: `route=1,2,3`, or `route=*1,2,3` for a snapshot. A row is its own id and its time in seconds. */
const numbers = (route: string, replayed: number): NonNullable<Topic["rows"]> => ({
  replayed,
  hasKey: true,
  read: (text) => {
    const list = text.slice(text.indexOf("=") + 1)
    const isSnapshot = list.startsWith("*")
    return {
      isSnapshot,
      rows: list.replace("*", "").split(",").filter((row) => row !== "").map((row) => ({
        id: row,
        text: row,
        time: Number(row) * 1000
      }))
    }
  },
  write: (rows, kind) =>
    `${route}=${kind === "snapshot" ? "*" : kind === "refill" ? "!" : ""}${rows.map(({ text }) => text).join(",")}`
})

export const stateTopic = (key: string, options: Partial<Topic> = {}): Topic => ({
  key,
  route: key,
  name: "state",
  delivery: "state",
  isSteady: false,
  isHarmless: false,
  isUnshared: false,
  subscribe: `+${key}`,
  unsubscribe: `-${key}`,
  ...options
})

export const rowTopic = (
  key: string,
  delivery: "snapshot" | "events",
  replayed: number,
  options: Partial<Topic> = {}
): Topic => stateTopic(key, { name: delivery, delivery, rows: numbers(options.route ?? key, replayed), ...options })
