/** Random operations on the entries of an action log, with equal results in two stores. */
import { assert } from "@effect/vitest"
import type { Settled } from "@trigate/domain/actions/ActionOutcome"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Change, Driver, Opening, Selection, Standing } from "@trigate/trading/actionLog/ActionLog"
import { isWritten } from "@trigate/trading/actionLog/ActionLog"
import type { Entry, Guard, Sending } from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as LoggedAction from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { now, other, sending } from "./actionLogSuite.ts"

const cloidOf = (index: number) => `0x${index.toString(16).padStart(32, "0")}` as const

/** One of eighteen actions: three nonces of two signers and of nobody, each with two contents. */
const nextSending = Effect.gen(function*() {
  const nonce = now + (yield* Random.choice([0, 1, 2]))
  const text = yield* Random.choice(["one", "two"])
  const signer = yield* Random.choice([other(1), other(2), undefined])
  const action = {
    type: "order",
    orders: [1, 2].map((index) => ({ b: true, p: "1", s: "2", c: cloidOf((nonce - now) * index) }))
  }
  const body = Utf8.encode(JSON.stringify({ action, nonce, text }))
  const { signer: _, ...rest } = sending({
    text,
    nonce,
    body,
    actionType: "order",
    trace: LoggedAction.readTrace(body)
  })
  return { ...rest, ...(signer === undefined ? {} : { signer }), caller: text } satisfies Sending
})

const settled: Settled = { by: "response", entries: [{ _tag: "Resting", oid: 7, cloid: cloidOf(1) }] }

type Ended = Extract<Change, { readonly state: unknown }>

/** The operations on entries that a store has. */
export interface Entries<E> {
  readonly insert: Driver<E>["insert"]
  readonly update: (key: LoggedAction.EntryKey, guard: Guard, change: Ended) => Effect.Effect<boolean, E>
  /** Changes the time of the next lookup. */
  readonly move: (key: LoggedAction.EntryKey, guard: Guard, to: number | undefined) => Effect.Effect<boolean, E>
  readonly find: (selection: Selection, now: number) => Effect.Effect<ReadonlyArray<Entry>, E>
  /** Further operations at a time, for a signer. */
  readonly others: ReadonlyArray<(now: number, signer: string) => Effect.Effect<unknown, E>>
}

const nextOpening = Effect.fnUntraced(function*(at: number, token: string) {
  const action = yield* nextSending
  const opening: Opening = {
    key: LoggedAction.entryKey(action),
    sending: action,
    part: yield* Random.choice(["familiar", "strangers"] as const),
    token,
    now: at,
    leaseUntil: at + 60_000,
    expiresAt: LoggedAction.expiryTime(action.nonce, at, yield* Random.choice([200_000, 2_000_000]))
  }
  const guard: Guard = {
    states: action.signer === undefined ? ["sent", "unknown"] : LoggedAction.statesBefore.sent,
    fingerprint: action.fingerprint,
    now: at
  }
  return [opening, guard] as const
})

const nextSelection = Effect.fnUntraced(
  function*({ fingerprint, key }: Pick<Opening, "key"> & { readonly fingerprint: string }, at: number) {
    return yield* Random.choice<ReadonlyArray<Selection>>([
      { id: fingerprint },
      { cloid: cloidOf(1) },
      { cloid: cloidOf(2), signer: other(1) },
      { signer: other(2), nonce: key.nonce },
      { due: at },
      { due: at }
    ])
  }
)

const keyOf = ({ fingerprint, nonce, signer }: LoggedAction.Identity) => `${nonce} ${fingerprint} ${signer}`

/** What a store returns for entries, whatever their order. */
export const sortEntries = (entries: ReadonlyArray<Entry>) =>
  entries
    .map(({ body, signer, trace, ...entry }) => ({
      ...entry,
      signer,
      trace,
      body: body === undefined ? undefined : [...body]
    }))
    .toSorted((one, another) => keyOf(one) < keyOf(another) ? -1 : 1)

const standingFrom = (answer: "new" | "repeat" | Standing) =>
  isWritten(answer)
    ? answer
    : [answer.state, answer.fingerprint, answer.leaseUntil, answer.expiresAt]

/** Runs random operations in both stores. Returns the kinds of results. */
export const recordEqually = Effect.fnUntraced(function*<E>(stores: readonly [real: Entries<E>, model: Entries<E>]) {
  const results = new Set<string>()
  const run = <A>(name: string, operation: (entries: Entries<E>) => Effect.Effect<A, E>) =>
    Effect.gen(function*() {
      const [expected, found] = [yield* operation(stores[0]), yield* operation(stores[1])]
      assert.deepStrictEqual(found, expected, name)
      return found
    })
  let at = now
  let due: ReadonlyArray<Entry> = []
  let tokens: ReadonlyArray<string> = ["none"]
  for (let step = 0; step < 150; step++) {
    at += yield* Random.choice([0, 1, 1000, 30_000])
    const name = `step ${step}`
    const token = `${step}`
    const [opening, guard] = yield* nextOpening(at, token)
    const { key, sending: { fingerprint } } = opening
    switch (
      yield* Random.choice(
        ["insert", "insert", "settle", "settle", "conclude", "find", "find", "move", "other"] as const
      )
    ) {
      case "insert": {
        const answer = yield* run(name, (entries) => Effect.map(entries.insert(opening, guard), standingFrom))
        if (typeof answer === "string") tokens = [...tokens.slice(-5), token]
        results.add(typeof answer === "string" ? answer : "standing")
        break
      }
      case "settle": {
        const settlement = yield* Random.choice(["accepted", "rejected", "unknown", "unknown", "released"] as const)
        const state = LoggedAction.nextState("sent", yield* Random.nextBoolean, settlement) ?? "unknown"
        const attempt: Guard = { states: LoggedAction.statesBefore[settlement], token: yield* Random.choice(tokens) }
        const change = { state, settled: state === "accepted" ? settled : undefined, part: opening.part }
        results.add(`settled ${yield* run(name, (entries) => entries.update(key, attempt, change))}`)
        break
      }
      case "conclude": {
        const unknown: Guard = { states: LoggedAction.statesBefore.expiry, fingerprint, now: at }
        const change = { state: "rejected", settled: { by: "expiry" } } as const
        results.add(`concluded ${yield* run(name, (entries) => entries.update(key, unknown, change))}`)
        break
      }
      case "find": {
        const selection = yield* nextSelection({ key, fingerprint }, at)
        const found = yield* run(name, (entries) => Effect.map(entries.find(selection, at), sortEntries))
        results.add(`found ${Object.keys(selection).join(" ")} ${found.length > 0}`)
        if ("due" in selection) due = yield* stores[0].find(selection, at)
        break
      }
      case "move": {
        const [entry] = yield* Random.shuffle(due)
        if (entry === undefined) break
        const state = LoggedAction.stateAt(entry, at)
        const to = yield* Random.choice([at, at + 1000, undefined])
        const same: Guard = { states: [state], now: at, lookUpAt: entry.lookUpAt }
        results.add(`moved ${yield* run(name, (entries) => entries.move(LoggedAction.entryKey(entry), same, to))}`)
        break
      }
      case "other": {
        const index = yield* Random.nextIntBetween(0, stores[0].others.length - 1)
        yield* run(`${name} other ${index}`, ({ others }) => others[index]?.(at, key.claimant) ?? Effect.void)
      }
    }
  }
  return results
})

const kinds = [
  "new",
  "repeat",
  "standing",
  "settled true",
  "concluded true",
  "moved true",
  "found id true",
  "found cloid true",
  "found cloid signer true",
  "found signer nonce true",
  "found due true"
]

/** Asserts that random operations have reached every kind of result. */
export const assertReached = (results: ReadonlyArray<ReadonlySet<string>>): void => {
  for (const kind of kinds) assert.isTrue(results.some((each) => each.has(kind)), kind)
}
