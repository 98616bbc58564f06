/**
 * Random interleavings of callers, subscriptions, events and lost connections: what each caller received is what the venue's
 * ledger has for its subscriptions, once, in order, and nothing of another user.
 */
import { assert, describe, layer as tests } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import type { Entry } from "./fakeVenue.ts"
import { alice, bob, keys, lab, layer, meanwhile } from "./lab.ts"
import type { Frame, TestSocket } from "./socket.ts"
import { randomBy } from "./venue/clock.ts"
import type { Command } from "./venue/control.ts"

export const users = [alice, bob]
export const coins = ["BTC", "ETH", "SOL"]

/** A subscription whose rows are compared with the ledger. */
export interface Kind {
  readonly subscription: Readonly<Record<string, string>>
  readonly key: string
  readonly channel: string
  /** Whether the first frame lists what happened before. */
  readonly hasPast: boolean
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

export const kinds: ReadonlyArray<Kind> = [
  ...coins.map((coin) => ({
    subscription: { type: "trades", coin },
    key: keys.trades(coin),
    channel: "trades",
    hasPast: true
  })),
  ...users.flatMap((user) => [
    { subscription: { type: "userFills", user }, key: keys.userFills(user), channel: "userFills", hasPast: true },
    {
      subscription: { type: "orderUpdates", user },
      key: keys.orderUpdates(user),
      channel: "orderUpdates",
      hasPast: false
    },
    { subscription: { type: "userEvents", user }, key: keys.userEvents(user), channel: "user", hasPast: false },
    {
      subscription: { type: "userNonFundingLedgerUpdates", user },
      key: `{"type":"userNonFundingLedgerUpdates","user":"${user}"}`,
      channel: "userNonFundingLedgerUpdates",
      hasPast: true
    }
  ])
]

/** The rows of a frame. Of `user` only fills are refilled after a lost connection, so only they are compared. */
const rows = ({ channel, data }: { readonly channel: string; readonly data: unknown }): ReadonlyArray<string> => {
  const member = { userFills: "fills", user: "fills", userNonFundingLedgerUpdates: "nonFundingLedgerUpdates" }[channel]
  return list(member === undefined ? data : JsonParts.at(data, member)).map((row) => JSON.stringify(row))
}

/** A caller of one kind of subscription, since frames of two users on one channel show no user. */
export interface Listener {
  readonly kind: Kind
  readonly socket: TestSocket
  /** Where the ledger of its subscription was when it subscribed. */
  readonly from: number
}

export const rowsOf = (ledger: ReadonlyArray<Entry>, key: string): ReadonlyArray<string> =>
  ledger.filter((entry) => entry.key === key).flatMap(rows)

const received = (socket: TestSocket, channel: string): ReadonlyArray<string> => socket.of(channel).flatMap(rows)

/** The last thing that happens to each subscription, by which every caller knows that nothing is left. */
export const ending: ReadonlyArray<Command> = [
  ...coins.map((coin) => ({ do: "trade", coin }) as const),
  ...users.flatMap((user) => [{ do: "fill", user, coin: "HYPE" } as const, { do: "transfer", user } as const])
]

/** The rows that a listener received, in the order of the ledger if its first frame lists what happened before. */
const seenBy = (
  { kind, socket }: Pick<Listener, "kind" | "socket">,
  all: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const seen = received(socket, kind.channel)
  if (!kind.hasPast) return seen
  // a first frame may list its rows from the newest on, as the venue's own does
  const places = new Map(all.map((row, place) => [row, place]))
  return seen.toSorted((left, right) => (places.get(left) ?? -1) - (places.get(right) ?? -1))
}

/** Asserts that what a listener received until it left is a part of the ledger, without a gap or a duplicate. */
export const assertContinuous = (
  listener: Pick<Listener, "kind" | "socket">,
  happened: ReadonlyArray<Entry>,
  what: string
): void => {
  const all = rowsOf(happened, listener.kind.key)
  const seen = seenBy(listener, all)
  const first = all.indexOf(seen[0] ?? "")
  if (seen.length > 0) assert.deepStrictEqual(seen, all.slice(first, first + seen.length), what)
  assert.deepStrictEqual(listener.socket.of("error"), [], what)
}

/** Waits for the last row of a listener's subscription, and compares what it received with the ledger. */
export const assertWhole = async (
  { from, kind, socket }: Listener,
  happened: ReadonlyArray<Entry>,
  what: string
): Promise<void> => {
  const all = rowsOf(happened, kind.key)
  const last = all.at(-1) ?? ""
  const isLast = (frames: ReadonlyArray<Frame>) =>
    frames.some((frame) => frame.channel === kind.channel && rows(frame).includes(last))
  await socket.until(isLast, what)
  const seen = seenBy({ kind, socket }, all)
  assert.deepStrictEqual(seen, all.slice(all.length - seen.length), what)
  // a refill may begin some seconds before the subscription, where nothing had happened since
  assert.isAtLeast(seen.length, all.length - from, what)
  assert.deepStrictEqual(socket.of("error"), [], what)
}

const play = Effect.fnUntraced(function*(seed: number, steps: number) {
  const random = randomBy(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const { ledger, open, run, state } = yield* lab({ TRIGATE_STREAM_GRACE: "1 second" }, {
    do: "switches",
    set: {
      isSnapshot: random() < 0.5 ? "absent" : "false",
      snapshotOrder: random() < 0.5 ? "ascending" : "descending"
    }
  }, { do: "step", coins, users, count: 20 })
  const listeners = new Set<Listener>()
  const script: Array<string> = []
  const subscribed = (kind: Kind) => meanwhile(run({ until: "subscribed", key: kind.key, count: 1 }))
  const settle = Effect.suspend(() =>
    Effect.forEach(new Set(Array.from(listeners, ({ kind }) => kind)), subscribed, { discard: true })
  )
  const join = Effect.gen(function*() {
    const kind = kinds[below(kinds.length)] ?? assert.fail("no kind")
    script.push(`join ${kind.key}`)
    const socket = yield* open()
    socket.subscribe(kind.subscription)
    const isAnswered = (frames: ReadonlyArray<Frame>) =>
      frames.some(({ channel }) => channel === "subscriptionResponse" || channel === "error")
    yield* meanwhile(Effect.promise(() => socket.until(isAnswered, "the acknowledgement")))
    assert.deepStrictEqual(socket.of("error"), [], script.join("\n"))
    listeners.add({ kind, socket, from: rowsOf(yield* ledger, kind.key).length })
  })
  const leave = Effect.sync(() => {
    const listener = [...listeners][below(listeners.size)]
    if (listener === undefined) return
    script.push(`leave ${listener.kind.key}`)
    listeners.delete(listener)
    if (random() < 0.5) listener.socket.unsubscribe(listener.kind.subscription)
    else listener.socket.raw.close()
  })
  const happen = Effect.suspend(() => {
    const count = 1 + below(6)
    script.push(`events ${count}`)
    return run({ do: "step", coins, users, count })
  })
  /** A connection or all of them are lost, and things happen before there is another one. */
  const lose = Effect.gen(function*() {
    const { connections } = yield* state
    const one = connections[below(connections.length)]
    const key = one?.keys[below(one.keys.length)]
    const count = below(5)
    script.push(`lose ${key ?? "all"}, then ${count} events`)
    yield* run(
      { do: "faults", set: { refuse: 503 } },
      random() < 0.5 || key === undefined ? { do: "drop" } : { do: "drop", key },
      { do: "step", coins, users, count },
      { do: "faults", set: {} }
    )
    yield* settle
  })
  for (let step = 0; step < steps; step++) {
    const dice = random()
    yield* dice < 0.3 ? join : dice < 0.4 ? leave : dice < 0.85 ? happen : lose
  }
  yield* settle
  yield* run(...ending)
  const happened = yield* ledger
  for (const listener of listeners) {
    const what = `seed ${seed}, ${listener.kind.key} from ${listener.from}\n${script.join("\n")}`
    yield* meanwhile(Effect.promise(() => assertWhole(listener, happened, what)))
  }
  assert.deepStrictEqual((yield* state).violations, [])
})

const given = process.env["TRIGATE_TEST_SEED"]
const firstSeed = given === undefined
  ? 1
  : Array.from(given).reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7)

/** Tests some seeds: those from 1 on, or from the one of `TRIGATE_TEST_SEED` on. */
export const testSeeds = (count: number): void => {
  describe("callers of any interleaving", () => {
    tests(layer)((it) => {
      for (const seed of Array.from({ length: count }, (_, index) => firstSeed + index)) {
        it.effect(`receive what happened to their subscriptions, once and in order (seed ${seed})`, () =>
          play(seed, 40))
      }
    })
  })
}
