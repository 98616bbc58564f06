import { assert, describe, it } from "@effect/vitest"
import { keys, traderStake } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { act, atStart, bigBlocks, delegate, start, submit } from "./venue.ts"

const { agent, cosigner, leader, multiSigUser, stranger, thirdCosigner, trader, validator } = keys

const request = (changes: Partial<SandboxSigner.MultiSigRequest> = {}): SandboxSigner.MultiSigRequest => ({
  nonce: start,
  multiSigUser: multiSigUser.address,
  action: bigBlocks(true),
  leader,
  cosigners: [leader, cosigner],
  ...changes
})

const together = (changes: Partial<SandboxSigner.MultiSigRequest> = {}) =>
  Effect.flatMap(SandboxSigner.signMultiSig(request(changes)), submit)

describe("a multi-sig account", () => {
  it.effect("acts when its threshold of authorised users has signed", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      assert.strictEqual(yield* together(), "ok")
      const wei = 5_000_000_000n
      const action = delegate(validator.address, wei, start + 1)
      assert.strictEqual(yield* together({ nonce: start + 1, action, cosigners: [thirdCosigner, cosigner] }), "ok")
      const account = Option.getOrThrow(yield* venue.account(multiSigUser.address))
      assert.isTrue(account.usingBigBlocks)
      assert.strictEqual(account.stake, traderStake - wei)
      assert.deepStrictEqual([...account.delegations], [[validator.address, { wei, lockedUntil: start + 86_400_000 }]])
    })))

  it.effect("counts a repeated signer once", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* together({ cosigners: [leader] }), "err: Multi-sig threshold not met")
      assert.strictEqual(yield* together({ cosigners: [leader, leader] }), "err: Multi-sig threshold not met")
      assert.strictEqual(yield* together({ cosigners: [leader, leader, cosigner] }), "ok")
    })))

  it.effect("knows its signers", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(
        yield* together({ cosigners: [leader, stranger] }),
        "err: Invalid multi-sig inner signer"
      )
      assert.strictEqual(yield* together({ leader: trader }), "err: Invalid multi-sig outer signer")
      assert.strictEqual(yield* together({ leader: stranger }), "err: Multi-sig outer signer must be an L1 user.")
      assert.strictEqual(
        yield* together({ multiSigUser: trader.address }),
        "err: Invalid multi-sig user"
      )
      const signed = yield* SandboxSigner.signMultiSig(request())
      const other = yield* SandboxSigner.signMultiSig(request({ nonce: start + 1 }))
      assert.strictEqual(
        yield* submit({ ...signed, signature: other.signature }),
        "err: Invalid multi-sig outer signer"
      )
    })))

  it.effect("may be led by an API wallet of a co-signer, whose own nonces count", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* venue.approveAgent(agent.address, leader.address)
      assert.strictEqual(yield* together({ leader: agent }), "ok")
      assert.strictEqual(yield* together({ leader: agent }), `err: Invalid nonce: duplicate nonce ${start}`)
      assert.strictEqual(yield* together(), "ok")
    })))

  it.effect("takes the inner action's refusals for its own", () =>
    atStart(Effect.gen(function*() {
      const mismatch = delegate(validator.address, 1n, start + 7)
      assert.strictEqual(yield* together({ action: mismatch }), "err: Nonce mismatch.")
      assert.strictEqual(
        yield* together({ action: delegate(trader.address, 1n, start) }),
        "err: Unknown validator"
      )
      assert.strictEqual(
        yield* together({ action: { type: "order", orders: [] }, nonce: start + 1 }),
        "422 Failed to deserialize the JSON body into the target type"
      )
    })))

  it.effect("comes into being by the venue's rules", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      const refused = (authorizedUsers: ReadonlyArray<`0x${string}`>, threshold: number) =>
        Effect.map(Effect.flip(venue.makeMultiSig(trader.address, { authorizedUsers, threshold })), (error) =>
          `${error.reason}: ${error.message}`)
      const known = [leader.address, cosigner.address]
      assert.strictEqual(yield* refused(known, 0), "MultiSig: Invalid multi-sig threshold")
      assert.strictEqual(yield* refused(known, 3), "MultiSig: Invalid multi-sig threshold")
      assert.strictEqual(
        yield* refused([trader.address], 1),
        "MultiSig: Cannot register self as multi-sig authorized user"
      )
      assert.strictEqual(
        yield* refused([stranger.address], 1),
        "MultiSig: Multi-sig authorized user must exist on L1"
      )
      assert.strictEqual(
        yield* refused(
          Array.from({ length: 11 }, () =>
            leader.address),
          1
        ),
        "MultiSig: Too many multi-sig signers"
      )
      yield* venue.makeMultiSig(trader.address, { authorizedUsers: known, threshold: 2 })
      assert.strictEqual(yield* act(trader, bigBlocks(true)), "err: Multi-sig required")
      assert.strictEqual(yield* together({ multiSigUser: trader.address }), "ok")
    })))
})
