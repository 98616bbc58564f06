/** Starts the fake venue in a process of its own and sends it commands. One process serves the tests of a file. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type ChildProcess, fork } from "node:child_process"
import type { Command, Condition } from "./venue/control.ts"

const main = new URL("venue/main.ts", import.meta.url).pathname

/** One frame for everybody who is subscribed to its key. */
const Entry = Schema.Struct({
  seq: Schema.Int,
  time: Schema.Int,
  key: Schema.String,
  channel: Schema.String,
  data: Schema.Unknown
})
export type Entry = typeof Entry.Type

const State = Schema.Struct({
  now: Schema.Int,
  /** Connections that it accepted since it was made anew. */
  opened: Schema.Int,
  connections: Schema.Array(Schema.Struct({ id: Schema.Int, keys: Schema.Array(Schema.String) })),
  messages: Schema.Int,
  pings: Schema.Int,
  held: Schema.Int,
  /** What the venue had to refuse or punish. */
  violations: Schema.Array(Schema.String),
  actions: Schema.Array(
    Schema.Struct({ via: Schema.Literals(["http", "post"]), text: Schema.String, nonce: Schema.Number })
  ),
  queries: Schema.Array(Schema.Struct({ via: Schema.Literals(["http", "post"]), query: Schema.Unknown })),
  ledger: Schema.Int
})
export type State = typeof State.Type

const Frames = Schema.Array(
  Schema.Struct({ id: Schema.Int, sent: Schema.Array(Schema.String), received: Schema.Array(Schema.String) })
)

/** The weight of a request, and the time at which it was received, in milliseconds of the machine's monotonic clock. */
const Weight = Schema.Struct({ at: Schema.Finite, weight: Schema.Int })
export type Weight = typeof Weight.Type

const decodeResults = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.Unknown)))
const decodeState = Schema.decodeUnknownSync(State)
const decodeLedger = Schema.decodeUnknownSync(Schema.Array(Entry))
const decodeTimes = Schema.decodeUnknownSync(Schema.Array(Schema.Finite))
const decodeWeights = Schema.decodeUnknownSync(Schema.Array(Weight))
const decodeFrames = Schema.decodeUnknownSync(Frames)

export interface FakeVenue {
  readonly url: string
  /** Carries out commands and waits for conditions, in order; returns what each command returned. */
  readonly run: (...messages: ReadonlyArray<Command | Condition>) => Promise<ReadonlyArray<unknown>>
  readonly state: () => Promise<State>
  /** Everything that happened, from a sequence number on. */
  readonly ledger: (from?: number) => Promise<ReadonlyArray<Entry>>
  /** When each entry of the ledger was made, in milliseconds of the machine's monotonic clock. */
  readonly times: () => Promise<ReadonlyArray<number>>
  readonly weights: () => Promise<ReadonlyArray<Weight>>
  /** The frames of each connection, as they were sent and received. */
  readonly frames: () => Promise<typeof Frames.Type>
}

const listening = /listens on (?<url>http:\/\/\S+)/u

const client = (url: string): FakeVenue => {
  const run = async (...messages: ReadonlyArray<Command | Condition>): Promise<ReadonlyArray<unknown>> => {
    const response = await fetch(`${url}/control`, { method: "POST", body: JSON.stringify(messages) })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`The fake venue refused ${JSON.stringify(messages)}: ${text}`)
    return decodeResults(text)
  }
  const last = async (command: Command): Promise<unknown> => (await run(command)).at(-1)
  return {
    url,
    run,
    state: async () => decodeState(await last({ do: "state" })),
    ledger: async (from = 0) => decodeLedger(await last({ do: "ledger", from })),
    times: async () => decodeTimes(await last({ do: "times" })),
    weights: async () => decodeWeights(await last({ do: "weights" })),
    frames: async () => decodeFrames(await last({ do: "frames" }))
  }
}

/** Starts a venue with a seed; it ends with the scope. */
export const fakeVenue = (seed = 1) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly child: ChildProcess; readonly url: string }>((resume) => {
        const { PATH, NODE_COMPILE_CACHE } = process.env
        const child = fork(main, [String(seed)], {
          execArgv: [],
          env: { PATH, NODE_COMPILE_CACHE },
          stdio: ["ignore", "pipe", "pipe", "ipc"]
        })
        let printed = ""
        const read = (chunk: Buffer) => {
          printed += chunk.toString("utf8")
          const url = listening.exec(printed)?.groups?.["url"]
          if (url !== undefined) resume(Effect.succeed({ child, url }))
        }
        child.stdout?.on("data", read)
        child.stderr?.on("data", read)
        child.on("close", () => resume(Effect.die(new Error(`The fake venue ended:\n${printed}`))))
      }),
      ({ child }) => Effect.sync(() => child.kill())
    ),
    ({ url }) => client(url)
  )
