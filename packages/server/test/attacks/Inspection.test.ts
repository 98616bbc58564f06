import { assert, describe, it } from "@effect/vitest"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"

const address = "0x0123456789abcdef0123456789abcdef01234567"
const signature = { r: `0x${"1".repeat(63)}`, s: `0x${"2".repeat(63)}`, v: 27 }

/** A wrapper of ten wrong signatures around an action that makes the body so many bytes long. */
const wrapper = (length: number): string => {
  const textOf = (filling: string) =>
    JSON.stringify({
      action: {
        type: "multiSig",
        signatureChainId: "0x66eee",
        signatures: Array.from({ length: 10 }, () => signature),
        payload: {
          multiSigUser: address,
          outerSigner: address,
          action: { type: "order", orders: [filling], grouping: "na" }
        }
      },
      nonce: 1_795_230_000_000,
      signature
    })
  return textOf("x".repeat(length - textOf("").length))
}

describe("POST /exchange/inspect", () => {
  it.live("inspects no body that would hold the thread", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const most = yield* post(`${url}/exchange/inspect`, wrapper(64 * 1024))
      assert.strictEqual(most.status, 200)
      assert.include(most.text, `"verdict":"unexplained"`)
      for (const length of [64 * 1024 + 1, 88 * 1024, 1024 * 1024]) {
        const refused = yield* post(`${url}/exchange/inspect`, wrapper(length))
        assert.strictEqual(refused.status, 413)
        assert.include(refused.json, { _tag: "PayloadTooLarge", limit: 64 * 1024 })
      }
    }))
})
