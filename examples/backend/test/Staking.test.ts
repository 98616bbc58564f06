/** A delegation is signed once, whatever happens to it on the way. */
import { assert, describe, it } from "@effect/vitest"
import { keys, traderStake } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import { Staking } from "../src/Staking.ts"
import { passing } from "./passing.ts"
import { mistaken, stranger, trader } from "./signers.ts"
import { answered, broken, over, rateLimited, type Reaction, sandbox } from "./upstreams.ts"

const now = Date.UTC(2026, 0, 10, 12)
const validator = keys.validator.address
const delegate = (hype: string) => Staking.use((staking) => staking.delegate(validator, hype))

/** Delegates over a venue that gives these answers, one after the other. */
const stakingOver = Effect.fnUntraced(function*(...answers: ReadonlyArray<ReturnType<Reaction>>) {
  let next = 0
  const { layer, sent } = over(() => answers[next++] ?? Effect.die("no more requests were expected"))
  const staking = yield* Layer.build(Staking.layer.pipe(Layer.provide([layer, trader])))
  return { delegated: Effect.provide(delegate("1.5"), staking), sent }
})

const accepted = answered(`{"status":"ok","response":{"type":"default"}}`)
const refusing = (words: string) => answered(JSON.stringify({ status: "err", response: words }))

describe("a delegation", () => {
  it.effect("is sent once if the venue takes it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { delegated, sent } = yield* stakingOver(accepted)
      assert.strictEqual(yield* delegated, now)
      assert.lengthOf(sent, 1)
      assert.include(sent[0]?.body, `"wei":150000000,"isUndelegate":false,"nonce":${now}}`)
    }))

  it.effect("is settled with the identical bytes if its answer is lost", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { delegated, sent } = yield* stakingOver(
        broken,
        rateLimited,
        broken,
        refusing(`Invalid nonce: duplicate nonce ${now}`)
      )
      assert.strictEqual(yield* passing(delegated), now)
      assert.lengthOf(sent, 4)
      assert.lengthOf(new Set(sent.map(({ body }) => body)), 1)
    }))

  it.effect("is still open, and not signed anew, if the venue never answers", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { delegated, sent } = yield* stakingOver(...Array.from({ length: 7 }, () => broken))
      const error = yield* passing(Effect.flip(delegated))
      assert.deepInclude(error, { _tag: "StillUnknown", nonce: now, group: "outcome-unknown" })
      assert.lengthOf(sent, 7)
      assert.lengthOf(new Set(sent.map(({ body }) => body)), 1)
    }))

  it.effect("fails if it was refused before its answer was lost", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { delegated, sent } = yield* stakingOver(broken, refusing("Nonce mismatch"))
      const error = yield* Effect.flip(delegated)
      assert.deepInclude(error, { _tag: "ActionRejected", reason: "NonceMismatch" })
      assert.lengthOf(sent, 2)
    }))

  it.effect("is not sent with another key's signature", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { layer, sent } = over(() => accepted)
      const error = yield* Effect.flip(
        Effect.provide(delegate("1.5"), Staking.layer.pipe(Layer.provide([layer, mistaken])))
      )
      assert.deepInclude(error, {
        _tag: "SignerMismatch",
        expected: keys.trader.address,
        group: "fix-setup"
      })
      assert.lengthOf(sent, 0)
    }))
})

describe("a delegation on the sandbox, which checks signatures, nonces and balances", () => {
  const stakingOn = (signer: typeof trader) => Staking.layer.pipe(Layer.provide(signer), Layer.provideMerge(sandbox()))

  it.effect("moves the stake", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* delegate("1.5")
      const { accounts } = yield* SandboxState.use(({ venue }) => Ref.get(venue.state))
      assert.strictEqual(accounts.get(keys.trader.address)?.stake, traderStake - 150_000_000n)
    }).pipe(Effect.provide(stakingOn(trader))))

  it.effect("is refused for a key that the venue does not know, and for an amount that is none", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      assert.deepInclude(yield* Effect.flip(delegate("1.5")), {
        _tag: "ActionRejected",
        reason: "UnknownSigner",
        signer: keys.stranger.address
      })
      assert.strictEqual((yield* Effect.flip(delegate("a lot")))._tag, "UnrepresentableHype")
    }).pipe(Effect.provide(stakingOn(stranger))))
})
