/** What every journal has to do, under a test clock. */
import { assert, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/Utf8"
import { Journal } from "@trigate/trading/Journal"
import type { Options, Sending, Settlement } from "@trigate/trading/Journal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

export const now = 1_795_230_000_000
export const day = 86_400_000

export const sending = (change: Partial<Sending> & { readonly text?: string } = {}): Sending => {
  const { text = "{\"nonce\":1}", ...rest } = change
  return {
    signer: "0x14791697260e4c9a71f18484c9f997b308e59325",
    nonce: now,
    actionType: "evmUserModify",
    body: Utf8.encode(text),
    ...rest
  }
}

/** Opens and settles at once. */
export const settled = (settlement: Settlement, change: Parameters<typeof sending>[0] = {}) =>
  Effect.scoped(
    Effect.flatMap(Journal.use((journal) => journal.open(sending(change))), (entry) => entry.settle(settlement))
  )

/** Opens in a scope that stays open. */
export const open = (change: Parameters<typeof sending>[0] = {}) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const entry = yield* Journal.use((journal) => journal.open(sending(change))).pipe(Scope.provide(scope))
    return { ...entry, close: Scope.close(scope, Exit.void) }
  })

export const unanswered = Journal.use((journal) => journal.unanswered)

export const states = Effect.map(unanswered, (entries) => entries.map(({ state }) => state))

export const texts = Effect.map(unanswered, (entries) => entries.map(({ body }) => new TextDecoder().decode(body)))

type Make = (options: Options) => Effect.Effect<Layer.Layer<Journal>, never, Scope.Scope>

/** The tests of a journal. */
export const suite = (make: Make): void => {
  const check = <F>(name: string, effect: Effect.Effect<void, F, Journal>, options: Options = {}) =>
    it.effect(name, () =>
      Effect.gen(function*() {
        const store = yield* make(options)
        yield* TestClock.setTime(now)
        yield* Effect.provide(effect, store)
      }).pipe(Effect.provide(Logger.layer([]))))

  check(
    "holds an action from before it is sent until its fate is known, byte for byte",
    Effect.gen(function*() {
      const text = "{\"nonce\":1,\"name\":\"Zoë \u{1F600}\"}"
      const entry = yield* open({ text })
      assert.isFalse(entry.isDoubtful)
      const [found, ...others] = yield* unanswered
      assert(found !== undefined)
      assert.deepStrictEqual({ ...found, body: [...found.body] }, {
        id: found.id,
        signer: "0x14791697260e4c9a71f18484c9f997b308e59325",
        nonce: now,
        actionType: "evmUserModify",
        body: [...Utf8.encode(text)],
        openedAt: now,
        state: "inFlight"
      })
      assert.match(found.id, /^0x[0-9a-f]{64}$/u)
      assert.lengthOf(others, 0)
      yield* entry.settle("decided")
      assert.lengthOf(yield* unanswered, 0)
    })
  )

  check(
    "tells an action whose signer nobody can tell",
    Effect.gen(function*() {
      const { signer: _, ...unsigned } = sending()
      yield* Effect.scoped(Journal.use((journal) => journal.open(unsigned)))
      const [found] = yield* unanswered
      assert(found !== undefined)
      assert.isFalse("signer" in found)
    })
  )

  check(
    "drops what was certainly not taken and keeps what may have been",
    Effect.gen(function*() {
      yield* settled("notTaken", { text: "a" })
      yield* settled("unknown", { text: "b" })
      yield* settled("decided", { text: "c" })
      assert.deepStrictEqual(yield* texts, ["b"])
      assert.deepStrictEqual(yield* states, ["unknown"])
    })
  )

  check(
    "counts an entry that nobody settled as unknown, and a second settlement not at all",
    Effect.gen(function*() {
      const left = yield* open()
      yield* left.close
      assert.deepStrictEqual(yield* states, ["unknown"])
      yield* left.settle("decided")
      assert.deepStrictEqual(yield* states, ["unknown"])
    })
  )

  check(
    "keeps the identical bytes as one entry, which a second sending decides only when it can",
    Effect.gen(function*() {
      yield* settled("unknown")
      yield* TestClock.adjust(5)
      const again = yield* open()
      assert.isTrue(again.isDoubtful)
      assert.deepStrictEqual(yield* states, ["inFlight"])
      yield* again.settle("notTaken")
      const [kept, ...others] = yield* unanswered
      assert.deepStrictEqual([kept?.state, kept?.openedAt, others.length], ["unknown", now, 0])
      yield* settled("decided")
      assert.lengthOf(yield* unanswered, 0)
    })
  )

  check(
    "lets an earlier sending settle nothing that a later one has to",
    Effect.gen(function*() {
      const first = yield* open()
      const second = yield* open()
      yield* first.settle("notTaken")
      assert.deepStrictEqual(yield* states, ["inFlight"])
      yield* second.settle("decided")
      assert.lengthOf(yield* unanswered, 0)
      yield* first.close
      assert.lengthOf(yield* unanswered, 0)
    })
  )

  check(
    "lists the oldest first and forgets one on request",
    Effect.gen(function*() {
      for (const text of ["b", "a", "c"]) {
        yield* settled("unknown", { text })
        yield* TestClock.adjust(1)
      }
      assert.deepStrictEqual(yield* texts, ["b", "a", "c"])
      const [, second] = yield* unanswered
      assert(second !== undefined)
      const forget = Journal.use((journal) => journal.forget(second.id))
      assert.isTrue(yield* forget)
      assert.isFalse(yield* forget)
      assert.deepStrictEqual(yield* texts, ["b", "c"])
    })
  )

  check(
    "refuses the next action when it is full, and loses nothing",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "a" })
      const second = yield* open({ text: "b" })
      const refused = yield* Effect.flip(settled("unknown", { text: "c" }))
      assert.deepStrictEqual([refused._tag, refused.upstream, refused.attempts], ["UpstreamUnavailable", "journal", 0])
      assert.strictEqual(
        refused.detail,
        "The action was not sent, since the journal of unanswered actions is full: resolve or forget what it holds"
      )
      assert.sameMembers([...yield* texts], ["a", "b"])
      // bytes that it holds already need no room
      yield* settled("unknown", { text: "a" })
      yield* second.settle("decided")
      yield* settled("unknown", { text: "c" })
      assert.sameMembers([...yield* texts], ["a", "c"])
    }),
    { capacity: 2 }
  )

  check(
    "is full by bytes, too",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "12345678" })
      assert.strictEqual((yield* Effect.flip(settled("unknown", { text: "123" })))._tag, "UpstreamUnavailable")
      yield* settled("unknown", { text: "12" })
      assert.sameMembers([...yield* texts], ["12345678", "12"])
    }),
    { maxBytes: 10 }
  )

  check(
    "makes room with the actions whose nonce has left the window, with no others",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "old" })
      yield* settled("unknown", { text: "new", nonce: now + 1 })
      yield* TestClock.adjust(2 * day - 1)
      assert.strictEqual((yield* Effect.flip(settled("unknown", { text: "more" })))._tag, "UpstreamUnavailable")
      yield* TestClock.adjust(1)
      yield* settled("unknown", { text: "more", nonce: now + 2 * day })
      assert.deepStrictEqual(yield* texts, ["new", "more"])
    }),
    { capacity: 2 }
  )
}
