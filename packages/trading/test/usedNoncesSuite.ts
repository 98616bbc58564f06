/** What every store of used nonces has to do, under a test clock. */
import { assert, it } from "@effect/vitest"
import type { Settlement, Use } from "@trigate/trading/UsedNonces"
import { UsedNonces } from "@trigate/trading/UsedNonces"
import type * as UsedNoncesModule from "@trigate/trading/UsedNonces"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

export const now = 1_795_230_000_000
export const day = 86_400_000

export const use = (change: Partial<Use> = {}): Use => ({
  signer: "0x14791697260e4c9a71f18484c9f997b308e59325",
  nonce: now,
  bytesHash: "ab".repeat(32),
  ...change
})
const otherBytes = { bytesHash: "cd".repeat(32) }

/** Claims and settles at once. */
export const settled = (settlement: Settlement, change: Partial<Use> = {}) =>
  Effect.scoped(
    Effect.flatMap(UsedNonces.use((nonces) => nonces.claim(use(change))), (claim) => claim.settle(settlement))
  )

/** Claims in a scope that stays open. */
export const open = (change: Partial<Use> = {}) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const claim = yield* UsedNonces.use((nonces) => nonces.claim(use(change))).pipe(Scope.provide(scope))
    return { settle: claim.settle, close: Scope.close(scope, Exit.void) }
  })

export const isFree = (change: Partial<Use> = {}) =>
  Effect.map(Effect.exit(settled("released", change)), Exit.isSuccess)

const refusalOf = (change: Partial<Use> = {}) => Effect.flip(settled("released", change))

type Make<E> = (
  options: UsedNoncesModule.Options
) => Effect.Effect<Layer.Layer<UsedNonces, E>, never, Scope.Scope>

/** The tests of a store. */
export const suite = <E>(make: Make<E>): void => {
  const check = <F>(
    name: string,
    effect: Effect.Effect<void, F, UsedNonces>,
    options: UsedNoncesModule.Options = {}
  ) =>
    it.effect(name, () =>
      Effect.gen(function*() {
        const store = yield* make(options)
        yield* TestClock.setTime(now)
        yield* Effect.provide(effect, store)
      }))

  check(
    "refuses a nonce in flight, whatever the bytes, and tells signer and nonce",
    Effect.gen(function*() {
      yield* open()
      for (const change of [{}, otherBytes]) {
        const error = yield* refusalOf(change)
        assert.deepStrictEqual([error._tag, error.signer, error.nonce], ["NonceAlreadyUsed", use().signer, now])
        assert.include(error.detail, "is being sent right now")
      }
    })
  )

  check(
    "refuses a nonce whose outcome is known, whatever the bytes",
    Effect.gen(function*() {
      yield* settled("known")
      for (const change of [{}, otherBytes]) {
        assert.include((yield* refusalOf(change)).detail, "its outcome is known")
      }
    })
  )

  check(
    "after an unknown outcome takes the identical bytes and no others",
    Effect.gen(function*() {
      yield* settled("unknown")
      assert.include((yield* refusalOf(otherBytes)).detail, "only the identical bytes")
      const again = yield* open()
      assert.include((yield* refusalOf()).detail, "is being sent right now")
      yield* again.settle("known")
      assert.include((yield* refusalOf()).detail, "its outcome is known")
    })
  )

  check(
    "a released nonce is free for any bytes",
    Effect.gen(function*() {
      yield* settled("released")
      assert.isTrue(yield* isFree(otherBytes))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "bytes whose outcome is unknown stay so when sending them again came to nothing",
    Effect.gen(function*() {
      yield* settled("unknown")
      yield* settled("released")
      assert.isFalse(yield* isFree(otherBytes))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "the first settlement counts",
    Effect.gen(function*() {
      const claim = yield* open()
      yield* claim.settle("unknown")
      yield* claim.settle("released")
      yield* claim.close
      assert.isFalse(yield* isFree(otherBytes))
      const second = yield* open()
      yield* claim.settle("released")
      assert.isFalse(yield* isFree())
      yield* second.settle("known")
    })
  )

  check(
    "a claim whose fibre dies is unknown",
    Effect.gen(function*() {
      const fibre = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(UsedNonces.use((nonces) => nonces.claim(use())), Effect.never)),
        { startImmediately: true }
      )
      while (yield* isFree(otherBytes)) yield* Effect.yieldNow
      yield* Fiber.interrupt(fibre)
      assert.isFalse(yield* isFree(otherBytes))
      assert.isTrue(yield* isFree())
    })
  )

  check(
    "counts for each signer and nonce, whatever the letter case of the address",
    Effect.gen(function*() {
      yield* settled("known")
      assert.isTrue(yield* isFree({ nonce: now + 1 }))
      assert.isTrue(yield* isFree({ signer: "0x0000000000000000000000000000000000000001" }))
      assert.isFalse(yield* isFree({ signer: `0x${use().signer.slice(2).toUpperCase()}` }))
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
      assert.strictEqual(claims.filter((claim) => claim._tag === "Success").length, 1)
    })
  )

  check(
    "keeps a nonce for two days after its time or its use, whichever is later",
    Effect.gen(function*() {
      yield* settled("known")
      yield* settled("known", { nonce: now + day })
      yield* settled("known", { nonce: now - day })
      yield* TestClock.adjust(2 * day - 1)
      assert.deepStrictEqual([yield* isFree(), yield* isFree({ nonce: now - day })], [false, false])
      yield* TestClock.adjust(1)
      yield* settled("known", { nonce: now + 2 * day })
      assert.deepStrictEqual([yield* isFree(), yield* isFree({ nonce: now - day })], [true, true])
      assert.isFalse(yield* isFree({ nonce: now + day }))
    })
  )

  check(
    "never keeps more than its capacity: the oldest go first",
    Effect.gen(function*() {
      for (let index = 0; index < 5; index++) yield* settled("known", { nonce: now + index })
      const free = yield* Effect.forEach([2, 3, 4], (index) => isFree({ nonce: now + index }))
      assert.deepStrictEqual(free, [false, false, false])
      assert.isTrue(yield* isFree())
    }),
    { capacity: 3 }
  )

  check(
    "is not degraded",
    Effect.gen(function*() {
      assert.isFalse(yield* UsedNonces.use((nonces) => nonces.degraded))
    })
  )
}
