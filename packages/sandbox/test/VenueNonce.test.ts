import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as ActionAdmission from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as VenueState from "@trigate/sandbox/unstable/venue/VenueState"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { act, atStart, bigBlocks, start } from "./venue.ts"

const { stranger, trader, validator } = keys
const day = 86_400_000
const signer = trader.address

const useAll = (nonces: ReadonlyArray<number>) =>
  nonces.reduce<VenueState.VenueState>(
    (state, nonce) => Result.getOrElse(ActionAdmission.useNonce(state, signer, nonce, start), () => state),
    VenueState.empty
  )

/** The nonces that the venue remembers of the signer. */
const usedOf = ({ nonces }: VenueState.VenueState) => Option.getOrThrow(HashMap.get(nonces, signer))

const refusal = (state: VenueState.VenueState, nonce: number) =>
  Result.match(ActionAdmission.useNonce(state, signer, nonce, start), {
    onFailure: (text) => text,
    onSuccess: () => "ok"
  })

describe("VenueNonce", () => {
  it("keeps a window of two days back and one day ahead, its ends included", () => {
    const state = VenueState.empty
    assert.strictEqual(refusal(state, start - 2 * day), "ok")
    assert.strictEqual(
      refusal(state, start - 2 * day - 1),
      `Invalid nonce: nonce too low ${start - 2 * day - 1} < ${start - 2 * day}`
    )
    assert.strictEqual(refusal(state, start + day), "ok")
    assert.strictEqual(
      refusal(state, start + day + 1),
      `Invalid nonce: nonce too high ${start + day + 1} > ${start + day}`
    )
  })

  it("keeps the 100 highest: below them everything is too low, among them only what was used is a duplicate", () => {
    const even = Array.from({ length: 100 }, (_, index) => start + 2 * index)
    const full = useAll(even)
    assert.strictEqual(usedOf(full).length, 100)
    assert.strictEqual(refusal(full, start), `Invalid nonce: duplicate nonce ${start}`)
    assert.strictEqual(refusal(full, start - 1), `Invalid nonce: nonce too low ${start - 1} < ${start}`)
    assert.strictEqual(refusal(full, start + 1), "ok")
    const moved = useAll([...even, start + 1])
    assert.deepStrictEqual(usedOf(moved).slice(0, 2), [start + 1, start + 2])
    assert.strictEqual(refusal(moved, start), `Invalid nonce: nonce too low ${start} < ${start + 1}`)
  })

  it("takes nonces out of order while fewer than 100 are kept", () => {
    const state = useAll([start + 50, start + 10, start - 3])
    assert.deepStrictEqual(usedOf(state), [start - 3, start + 10, start + 50])
  })

  it.effect.prop("never takes one nonce twice", [
    Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })))
  ], ([offsets]) =>
    Effect.sync(() => {
      let state = VenueState.empty
      const taken = new Set<number>()
      for (const offset of offsets) {
        const used = ActionAdmission.useNonce(state, signer, start + offset, start)
        assert.strictEqual(Result.isSuccess(used), !taken.has(offset))
        if (Result.isSuccess(used)) {
          taken.add(offset)
          state = used.success
        }
      }
    }))

  it.effect("counts for each signer alone, for refused actions too, and not for unknown signers", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      assert.strictEqual(yield* act(trader, bigBlocks(true)), "ok")
      assert.strictEqual(yield* act(trader, bigBlocks(false)), `err: Invalid nonce: duplicate nonce ${start}`)
      assert.strictEqual(yield* act(validator, bigBlocks(true)), "ok")
      assert.strictEqual(
        yield* act(trader, { type: "CSignerAction", jailSelf: null }, { nonce: start + 1 }),
        "err: Signer invalid or inactive for current epoch"
      )
      assert.strictEqual(
        yield* act(trader, bigBlocks(false), { nonce: start + 1 }),
        `err: Invalid nonce: duplicate nonce ${start + 1}`
      )
      yield* act(stranger, bigBlocks(true))
      const { nonces } = yield* Ref.get(venue.state)
      assert.deepStrictEqual([...HashMap.keys(nonces)].toSorted(), [trader.address, validator.address].toSorted())
    })))
})
