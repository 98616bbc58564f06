/** What every action log has to do, under a test clock. */
import { assert, it } from "@effect/vitest"
import type { ActionReference } from "@trigate/domain/actions/ActionOutcome"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Options } from "@trigate/trading/actionLog/ActionLog"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import type { Sending, Settlement } from "@trigate/trading/unstable/actionLog/LoggedAction"
import { claimed, mostFound } from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

export const now = 1_795_230_000_000
export const day = 86_400_000
export const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"

type Change = Partial<Sending> & { readonly text?: string }

const hexOf = (text: string) => Array.from(Utf8.encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("")

/** An action whose content is its text; by default all have the same nonce, and a signer that the log does not know. */
export const sending = ({ text = "one", ...change }: Change = {}): Sending => ({
  caller: "local",
  isListed: false,
  signer,
  nonce: now,
  actionType: "evmUserModify",
  fingerprint: `0x${hexOf(text)}`,
  body: Utf8.encode(text),
  ...change
})

/** Some signer. */
export const other = (index: number) => `0x${index.toString(16).padStart(40, "0")}` as const

/** An action that nobody is known to have signed. */
export const unsigned = (change: Change = {}): Sending => {
  const { signer: _, ...rest } = sending(change)
  return rest
}

/** Claims, and says how the use of the claim ends. */
export const openAs = (action: Sending) =>
  ActionLog.use((log) => Effect.map(log.claim(action), (claim) => ({ ...claim, close: claim.settle("unknown") })))
export const open = (change: Change = {}) => openAs(sending(change))

/** Claims and settles at once. */
export const settledAs = (settlement: Settlement, action: Sending) =>
  Effect.flatMap(openAs(action), (claim) => Effect.andThen(claim.settle(settlement), claim.close))
export const settled = (settlement: Settlement, change: Change = {}) => settledAs(settlement, sending(change))

/** Whether an action could be sent now. */
export const isFree = (change: Change = {}) => Effect.map(Effect.exit(settled("released", change)), Exit.isSuccess)

/** Why an action cannot be sent now. */
export const refusalOf = (change: Change = {}) =>
  Effect.map(Effect.flip(settled("released", change)), ({ detail }) => detail)

export const unanswered = ActionLog.use((log) => log.unanswered)
export const states = Effect.map(unanswered, (entries) => entries.map(({ state }) => state))
export const texts = Effect.map(unanswered, (entries) => entries.map(({ body }) => new TextDecoder().decode(body)))

type Make<E> = (options: Options) => Effect.Effect<Layer.Layer<ActionLog, E>, never, Scope.Scope>

/**
 * A log whose own fibers sleep forever: in two days they would ask a database 17 280 times whether it is up.
 */
const withoutBackground = <E>(log: Layer.Layer<ActionLog, E>): Layer.Layer<ActionLog, E> =>
  Layer.provide(
    log,
    Layer.effect(
      Clock.Clock,
      Effect.map(Clock.Clock, (clock): Clock.Clock => ({
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: () => Effect.never
      }))
    )
  )

/** The tests of an action log. */
export const suite = <E>(make: Make<E>): void => {
  const check = <F>(
    name: string,
    effect: Effect.Effect<void, F, ActionLog>,
    options: Options = {},
    adapt = identity<Layer.Layer<ActionLog, E>>
  ) =>
    it.effect(name, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        yield* Effect.provide(effect, adapt(yield* make(options)))
      }).pipe(Effect.provide(Logger.layer([]))))

  check(
    "holds an action from before it is sent until it is answered, byte for byte",
    Effect.gen(function*() {
      const text = "{\"nonce\":1,\"name\":\"Zoë \u{1F600}\"}"
      const claim = yield* open({ text })
      assert.isFalse(claim.isRepeat)
      const [found, ...others] = yield* unanswered
      assert(found !== undefined)
      assert.deepStrictEqual({ ...found, body: [...found.body] }, {
        signer,
        nonce: now,
        actionType: "evmUserModify",
        fingerprint: `0x${hexOf(text)}`,
        body: [...Utf8.encode(text)],
        openedAt: now,
        state: "sent"
      })
      assert.lengthOf(others, 0)
      yield* claim.settle("accepted")
      assert.lengthOf(yield* unanswered, 0)
    })
  )

  check(
    "refuses a nonce that is being sent, whatever the content, and tells signer and nonce",
    Effect.gen(function*() {
      yield* open()
      for (const text of ["one", "two"]) {
        const error = yield* Effect.flip(settled("released", { text }))
        assert(error._tag === "NonceAlreadyUsed")
        assert.deepStrictEqual([error.signer, error.nonce], [signer, now])
        assert.include(error.detail, "is being sent right now")
      }
    })
  )

  check(
    "finds an action by its id, its signer and nonce, and the cloids of its orders, whatever became of it",
    Effect.gen(function*() {
      const trace = (...cloids: ReadonlyArray<`0x${string}`>) => ({
        legs: cloids.map((cloid) => ({ cloid, isBuy: true, price: "1", size: "2" }))
      })
      const one = "0x00000000000000000000000000000001"
      const two = "0x00000000000000000000000000000002"
      const find = (reference: ActionReference) =>
        ActionLog.use((log) => Effect.map(log.find(reference), (found) => found.map(({ state }) => state)))
      const entries = [{ _tag: "Resting", oid: 7, cloid: one }] as const
      const vault = `0x${"cc".repeat(20)}` as const
      const claim = yield* open({ trace: { ...trace(one, two), expiresAfter: now + 5, vault }, nonce: now + 1 })
      assert.deepStrictEqual(yield* find({ cloid: two }), ["sent"])
      yield* claim.settle("accepted", 200, entries)
      const other_ = yield* open({ trace: trace(one), nonce: now + 2, text: "two", signer: other(2) })
      yield* other_.settle("unknown")
      assert.deepStrictEqual((yield* find({ cloid: one })).toSorted(), ["accepted", "unknown"])
      assert.deepStrictEqual(yield* find({ cloid: one, signer: other(2) }), ["unknown"])
      assert.deepStrictEqual(yield* find({ id: `0x${hexOf("two")}` }), ["unknown"])
      assert.deepStrictEqual(yield* find({ signer, nonce: now + 2 }), [])
      const [found] = yield* ActionLog.use((log) => log.find({ signer, nonce: now + 1 }))
      assert.deepStrictEqual(found, {
        signer,
        nonce: now + 1,
        fingerprint: `0x${hexOf("one")}`,
        state: "accepted",
        settled: { by: "response", entries },
        vault
      })
      const [[second], known] = yield* ActionLog.use((log) =>
        Effect.all([log.find({ cloid: one, signer: other(2) }), log.find({ id: `0x${hexOf("one")}` })])
      )
      assert.deepStrictEqual([second?.vault, known[0]?.vault], ["", vault])
    })
  )

  check(
    "finds an action by its signer and cloid, whatever the number of other signers with the cloid",
    Effect.gen(function*() {
      const cloid = "0x00000000000000000000000000000003"
      const trace = { legs: [{ cloid, isBuy: true, price: "1", size: "2" } as const] }
      const strangers = Array.from({ length: mostFound }, (_, index) => `${index}`)
      yield* Effect.forEach(
        strangers,
        (text, index) => open({ trace, text, signer: other(index + 2) }),
        { concurrency: "unbounded", discard: true }
      )
      yield* open({ trace })
      const found = yield* ActionLog.use((log) => log.find({ cloid, signer }))
      assert.deepStrictEqual(found.map((each) => each.signer), [signer])
    })
  )

  check(
    "concludes an action of unknown outcome and no other, and its nonce stays used",
    Effect.gen(function*() {
      const conclude = (text: string) =>
        ActionLog.use((log) => log.conclude(`0x${hexOf(text)}`, { state: "neverArrived", settled: { by: "expiry" } }))
      const claim = yield* open({ nonce: now + 1 })
      assert.isFalse(yield* conclude("one"))
      yield* claim.settle("unknown")
      assert.isTrue(yield* conclude("one"))
      assert.isFalse(yield* conclude("one"))
      assert.isFalse(yield* conclude("two"))
      assert.lengthOf(yield* unanswered, 0)
      const [found] = yield* ActionLog.use((log) => log.find({ signer, nonce: now + 1 }))
      assert.strictEqual(found?.state, "neverArrived")
      assert.include(yield* refusalOf({ nonce: now + 1 }), "its outcome is known")
    })
  )

  check(
    "gives an action of unknown outcome to one lookup at a time, ever more seldom",
    Effect.gen(function*() {
      const take = ActionLog.use((log) => Effect.map(log.takeUnknown, (taken) => taken.map(({ nonce }) => nonce)))
      yield* settled("unknown", { nonce: now + 1 })
      assert.deepStrictEqual([yield* take, yield* take], [[now + 1], []])
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(yield* take, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([yield* take, yield* take], [[now + 1], []])
      yield* TestClock.adjust(9000)
      assert.deepStrictEqual(yield* take, [now + 1])
      yield* TestClock.adjust(4999)
      assert.deepStrictEqual(yield* take, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* take, [now + 1])
    })
  )

  for (const settlement of ["accepted", "rejected", "refused"] as const) {
    check(
      `refuses a nonce whose action was ${settlement}, whatever the content`,
      Effect.gen(function*() {
        yield* settled(settlement)
        for (const text of ["one", "two"]) assert.include(yield* refusalOf({ text }), "its outcome is known")
        assert.lengthOf(yield* unanswered, 0)
      })
    )
  }

  check(
    "after an unknown outcome takes the same signed content and no other",
    Effect.gen(function*() {
      yield* settled("unknown")
      assert.include(yield* refusalOf({ text: "two" }), "only the same signed content")
      const again = yield* open()
      assert.isTrue(again.isRepeat)
      assert.include(yield* refusalOf(), "is being sent right now")
      yield* again.settle("accepted")
      assert.include(yield* refusalOf(), "its outcome is known")
    })
  )

  check(
    "compares the signed content and not the bytes: others neither use up a nonce nor take room",
    Effect.gen(function*() {
      yield* settled("unknown")
      const spaced = sending({ body: Utf8.encode("one  and ten spaces          ") })
      const again = yield* openAs(spaced)
      assert.isTrue(again.isRepeat)
      yield* again.settle("unknown")
      // the bytes that were sent first
      assert.deepStrictEqual(yield* texts, ["one"])
    }),
    { capacity: 10, maxBytes: 30 }
  )

  check(
    "a released nonce is free for any content",
    Effect.gen(function*() {
      yield* settled("released")
      assert.lengthOf(yield* unanswered, 0)
      assert.isTrue(yield* isFree({ text: "two" }))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "an unknown outcome stays so when sending again says nothing about the first time",
    Effect.gen(function*() {
      yield* settled("unknown")
      yield* TestClock.adjust(5)
      for (const settlement of ["released", "refused"] as const) {
        const again = yield* open()
        assert.deepStrictEqual(yield* states, ["sent"])
        yield* again.settle(settlement)
        const [kept, ...others] = yield* unanswered
        assert.deepStrictEqual([kept?.state, kept?.openedAt, others.length], ["unknown", now, 0])
        assert.isFalse(yield* isFree({ text: "two" }))
      }
      yield* settled("rejected")
      assert.lengthOf(yield* unanswered, 0)
      assert.include(yield* refusalOf(), "its outcome is known")
    })
  )

  check(
    "the first settlement counts, and a claim that nobody settled is unknown",
    Effect.gen(function*() {
      const left = yield* open()
      yield* left.close
      assert.deepStrictEqual(yield* states, ["unknown"])
      yield* left.settle("accepted")
      assert.deepStrictEqual(yield* states, ["unknown"])
      const second = yield* open()
      yield* left.settle("released")
      assert.isFalse(yield* isFree())
      yield* second.settle("unknown")
      yield* second.settle("released")
      yield* second.close
      assert.isFalse(yield* isFree({ text: "two" }))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "a claim whose fibre dies is unknown",
    Effect.gen(function*() {
      const log = yield* ActionLog
      const fibre = yield* Effect.forkChild(
        claimed(log, sending(), () => Effect.never),
        { startImmediately: true }
      )
      while ((yield* unanswered).length === 0) yield* Effect.yieldNow
      yield* Fiber.interrupt(fibre)
      assert.deepStrictEqual(yield* states, ["unknown"])
      assert.isFalse(yield* isFree({ text: "two" }))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "counts for each signer and nonce, whatever the letter case of the address",
    Effect.gen(function*() {
      yield* settled("accepted")
      assert.isTrue(yield* isFree({ nonce: now + 1 }))
      assert.isTrue(yield* isFree({ signer: "0x0000000000000000000000000000000000000001" }))
      assert.isFalse(yield* isFree({ signer: `0x${signer.slice(2).toUpperCase()}` }))
    })
  )

  check(
    "one of 200 concurrent claims wins",
    Effect.gen(function*() {
      const claims = yield* Effect.forEach(
        Array.from({ length: 200 }),
        () => Effect.result(open()),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(claims.filter(Result.isSuccess), 1)
      const tags = claims.flatMap((claim) => Result.isFailure(claim) ? [claim.failure._tag] : [])
      assert.deepStrictEqual(new Set(tags), new Set(["NonceAlreadyUsed"]))
      assert.lengthOf(yield* unanswered, 1)
    })
  )

  check(
    "takes an action without a signer as often as it comes, and lists it once",
    Effect.gen(function*() {
      const first = yield* openAs(unsigned())
      const second = yield* openAs(unsigned())
      assert.deepStrictEqual([first.isRepeat, second.isRepeat], [false, true])
      const [found, ...others] = yield* unanswered
      assert(found !== undefined)
      assert.isFalse("signer" in found)
      assert.lengthOf(others, 0)
      // other content under the same nonce is another entry
      yield* settledAs("unknown", unsigned({ text: "two" }))
      assert.sameMembers([...yield* texts], ["one", "two"])
      // the second sending decides, and an earlier one settles nothing for it
      yield* first.settle("released")
      assert.sameMembers([...yield* states], ["sent", "unknown"])
      yield* second.settle("accepted")
      assert.deepStrictEqual(yield* texts, ["two"])
      yield* first.close
      yield* settledAs("accepted", unsigned())
      assert.deepStrictEqual(yield* texts, ["two"])
    })
  )

  check(
    "lists the oldest first, and forgets one on request without giving its nonce back",
    Effect.gen(function*() {
      for (const [index, text] of ["b", "a", "c"].entries()) {
        yield* settled("unknown", { text, nonce: now + index })
        yield* TestClock.adjust(1)
      }
      yield* settledAs("unknown", unsigned({ text: "d" }))
      assert.deepStrictEqual(yield* texts, ["b", "a", "c", "d"])
      const forget = (text: string) => ActionLog.use((log) => log.forget(sending({ text }).fingerprint))
      assert.deepStrictEqual([yield* forget("a"), yield* forget("a"), yield* forget("d")], [true, false, true])
      assert.deepStrictEqual(yield* texts, ["b", "c"])
      for (const text of ["a", "other"]) {
        assert.include(yield* refusalOf({ text, nonce: now + 1 }), "was removed from the action log")
      }
    })
  )

  check(
    "refuses the next action when it is full, and loses nothing",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "a" })
      const second = yield* open({ text: "b", nonce: now + 1 })
      const refused = yield* Effect.flip(settled("unknown", { text: "c", nonce: now + 2 }))
      assert(refused._tag === "UpstreamUnavailable")
      assert.deepStrictEqual([refused.upstream, refused.attempts], ["action-log", 0])
      assert.strictEqual(
        refused.detail,
        "The action was not sent: the action log contains the maximum number of unanswered actions of unknown " +
          "signers: a signer is known after an accepted action, or if it is on an allow-list"
      )
      assert.sameMembers([...yield* texts], ["a", "b"])
      // a nonce that was used is told as such, and content that the log holds needs no room
      assert.include(yield* refusalOf({ text: "c" }), "only the same signed content")
      yield* settled("unknown", { text: "a" })
      // an answer makes room
      yield* second.settle("rejected")
      yield* settled("unknown", { text: "c", nonce: now + 2 })
      assert.sameMembers([...yield* texts], ["a", "c"])
    }),
    { capacity: 20 }
  )

  check(
    "keeps room for the signers that it knows: strangers cannot take it, whoever sends for them",
    Effect.gen(function*() {
      yield* settled("accepted")
      for (let index = 0; index < 8; index++) {
        yield* Effect.exit(settled("unknown", { text: `s${index}`, signer: other(index), caller: `address:${index}` }))
      }
      assert.lengthOf(yield* texts, 2)
      const refused = yield* Effect.flip(settled("unknown", { text: "s", signer: other(9), caller: "address:9" }))
      assert.include(refused.detail, "unanswered actions of unknown signers")
      assert.include(
        (yield* Effect.flip(settledAs("unknown", { ...unsigned({ text: "u" }), caller: "address:9" }))).detail,
        "unanswered actions of unknown signers"
      )
      // known by the accepted action, and by a list
      yield* settled("unknown", { text: "familiar", nonce: now + 1, caller: "address:9" })
      yield* settled("unknown", { text: "listed", signer: other(10), isListed: true, caller: "address:9" })
      assert.sameMembers([...yield* texts], ["s0", "s1", "familiar", "listed"])
      assert.deepStrictEqual(yield* ActionLog.use((log) => log.used), { familiar: 2 / 20, strangers: 1 })
    }),
    { capacity: 20 }
  )

  check(
    "knows no signer by an action that was not accepted",
    Effect.gen(function*() {
      for (const [index, settlement] of (["rejected", "refused", "released", "unknown"] as const).entries()) {
        yield* settled(settlement, { text: `a${index}`, signer: other(index) })
      }
      yield* settled("unknown", { text: "b", signer: other(5) })
      for (const index of [0, 1, 2, 3]) {
        const refused = yield* Effect.flip(settled("released", { nonce: now + 1, signer: other(index) }))
        assert.include(refused.detail, "unanswered actions of unknown signers")
      }
    }),
    { capacity: 20 }
  )

  check(
    "gives each caller a quarter of what is free for strangers",
    Effect.gen(function*() {
      const sent = (caller: string) =>
        Effect.map(
          Effect.forEach(Array.from({ length: 10 }, (_, index) => index), (index) =>
            Effect.exit(
              settled("unknown", {
                text: `${caller}${index}`,
                signer: other(index),
                nonce: now + caller.length,
                caller
              })
            )),
          (exits) => exits.filter(Exit.isSuccess).length
        )
      assert.deepStrictEqual([yield* sent("a"), yield* sent("bb"), yield* sent("ccc")], [4, 4, 3])
      assert.strictEqual(yield* sent("local"), 9)
    }),
    { capacity: 200 }
  )

  check(
    "gives each signer that it knows a tenth of what is free for them, in actions and in bytes",
    Effect.gen(function*() {
      const sent = (index: number, text: string) =>
        Effect.map(
          Effect.forEach(Array.from({ length: 5 }, (_, nonce) => nonce), (nonce) =>
            Effect.exit(
              settled("unknown", {
                text: `${text}${index}${nonce}`,
                signer: other(index),
                nonce: now + nonce,
                isListed: true
              })
            )),
          (exits) => exits.filter(Exit.isSuccess).length
        )
      assert.deepStrictEqual([yield* sent(1, ""), yield* sent(2, "")], [3, 3])
      const refused = yield* Effect.flip(settled("unknown", { signer: other(1), nonce: now + 9, isListed: true }))
      assert.include(refused.detail, "contains the maximum number of unanswered actions of this signer")
      assert.strictEqual(yield* sent(3, "x".repeat(30)), 2)
    }),
    { capacity: 30, maxBytes: 1000 }
  )

  check(
    "says so when it is full for the signers that it knows",
    Effect.gen(function*() {
      yield* settled("unknown", { signer: other(1), isListed: true })
      const refused = yield* Effect.flip(settled("unknown", { text: "two", signer: other(2), isListed: true }))
      assert.strictEqual(
        refused.detail,
        "The action was not sent: the action log is full of unanswered actions; resolve or forget some"
      )
    }),
    { capacity: 1 }
  )

  check(
    "is full by bytes, too",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "12345678" })
      const more = yield* Effect.flip(settled("unknown", { text: "123", nonce: now + 1 }))
      assert.strictEqual(more._tag, "UpstreamUnavailable")
      yield* settled("unknown", { text: "12", nonce: now + 1 })
      assert.sameMembers([...yield* texts], ["12345678", "12"])
    }),
    { maxBytes: 100 }
  )

  check(
    "makes room with the actions whose nonce has left the window, with no others",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "old" })
      yield* settled("unknown", { text: "new", nonce: now + 1 })
      yield* TestClock.adjust(2 * day - 1)
      const refused = yield* Effect.flip(settled("unknown", { text: "more", nonce: now + 2 * day }))
      assert.strictEqual(refused._tag, "UpstreamUnavailable")
      yield* TestClock.adjust(1)
      yield* settled("unknown", { text: "more", nonce: now + 2 * day })
      assert.deepStrictEqual(yield* texts, ["new", "more"])
    }),
    { capacity: 20 },
    withoutBackground
  )

  check(
    "keeps a nonce for two days after its time or its use, whichever is later",
    Effect.gen(function*() {
      yield* settled("accepted")
      yield* settled("accepted", { nonce: now + day })
      yield* settled("rejected", { nonce: now - day })
      yield* settled("unknown", { nonce: now - 1 })
      const other = { text: "two", nonce: now - 1 }
      yield* TestClock.adjust(2 * day - 1)
      assert.deepStrictEqual(
        [yield* isFree(), yield* isFree({ nonce: now - day }), yield* isFree(other)],
        [false, false, false]
      )
      yield* TestClock.adjust(1)
      yield* settled("accepted", { nonce: now + 2 * day })
      assert.deepStrictEqual(
        [yield* isFree(), yield* isFree({ nonce: now - day }), yield* isFree(other)],
        [true, true, true]
      )
      assert.isFalse(yield* isFree({ nonce: now + day }))
    }),
    {},
    withoutBackground
  )

  check(
    "forgets the oldest answered actions over its capacity, and no unanswered one",
    Effect.gen(function*() {
      yield* settled("unknown", { text: "open", nonce: now - 1 })
      for (let index = 0; index < 9; index++) yield* settled("accepted", { nonce: now + index })
      assert.deepStrictEqual([yield* isFree({ nonce: now + 7 }), yield* isFree({ nonce: now + 8 })], [false, false])
      // a database drops them in the background
      while (!(yield* isFree())) yield* Effect.yieldNow
      assert.deepStrictEqual(yield* texts, ["open"])
    }),
    { settledCapacity: 3 }
  )

  check(
    "is up",
    Effect.gen(function*() {
      assert.isTrue(yield* ActionLog.use((log) => log.isUp))
    })
  )
}
