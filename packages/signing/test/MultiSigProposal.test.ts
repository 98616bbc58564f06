import { assert, describe, it } from "@effect/vitest"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { cosignerOf, delegation, nonce, request } from "./cosigners.ts"

const vault = "0x1719884EB866cb12b2287399b15f7db5e7d775ea"

const l1Request = {
  network: "testnet",
  multiSigUser: request.multiSigUser,
  outerSigner: request.outerSigner,
  action: { type: "evmUserModify", usingBigBlocks: true },
  nonce,
  vaultAddress: vault,
  expiresAfter: nonce + 60_000
} as const

/** What a carrier does that knows nothing of digits and order: it reads doubles and prints keys sorted. */
const carried = (text: string): string => {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted)
    return Predicate.isObject(value)
      ? Object.fromEntries(
        Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([key, item]) => [key, sorted(item)])
      )
      : value
  }
  return JSON.stringify(sorted(JSON.parse(text)))
}

const altered = (text: string, change: object): string => {
  const parsed: unknown = JSON.parse(text)
  return JSON.stringify(Predicate.isObject(parsed) ? { ...parsed, ...change } : parsed)
}

const Values = Schema.Array(Schema.Union([Schema.String, Schema.Int, Schema.Boolean, Schema.Null]))

describe("MultiSigProposal", () => {
  it.effect("says what is signed and what it means", () =>
    Effect.gen(function*() {
      const proposal = yield* MultiSigProposal.propose(request)
      assert.deepStrictEqual(proposal.summary, [
        "On mainnet, the multi-sig account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 delegates 184467440737.09551615 " +
        "HYPE (wei 18446744073709551615) of stake to the validator \"0x5ac99df645f3414876c816caa18b2d234024b487\".",
        "The leader 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 sends the action with the nonce 1795230000000 " +
        "(2026-11-21T03:00:00.000Z).",
        "3 of 5 co-signers have to approve: 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266, " +
        "0x70997970c51812dc3a010c7d01b50e0d17dc79c8, 0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc, " +
        "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65, 0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc.",
        "The venue refuses the action after 2026-11-23T03:00:00.000Z, when its nonce becomes too old."
      ])
      assert.strictEqual(proposal.typedData.primaryType, "HyperliquidTransaction:TokenDelegate")
      assert.deepStrictEqual(proposal.typedData.message, {
        hyperliquidChain: "Mainnet",
        payloadMultiSigUser: "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
        outerSigner: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        validator: "0x5ac99df645f3414876c816caa18b2d234024b487",
        wei: "18446744073709551615",
        isUndelegate: false,
        nonce
      })
      const l1 = yield* MultiSigProposal.propose(l1Request)
      assert.deepStrictEqual(l1.summary, [
        "On testnet, the multi-sig account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 chooses big blocks for its EVM " +
        "transactions.",
        "The action is for the vault or sub-account 0x1719884eb866cb12b2287399b15f7db5e7d775ea.",
        "The leader 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 sends the action with the nonce 1795230000000 " +
        "(2026-11-21T03:00:00.000Z).",
        "The number of co-signers that have to approve is not stated.",
        "The venue refuses the action after 2026-11-21T03:01:00.000Z, when the action expires.",
        "Caution: the account's original key keeps control of its EVM account, whatever the co-signers decide."
      ])
    }))

  it.effect("shows other actions whole, and nothing in them that looks like something else", () =>
    Effect.gen(function*() {
      const action = {
        type: "order",
        note: "\u202e\u200bsdnuf\n\ud83d\ude00",
        to: "0xABCDEF7890123456789012345678901234567890"
      }
      const { summary } = yield* MultiSigProposal.propose({ ...l1Request, action })
      assert.strictEqual(
        summary[0],
        "On testnet, the multi-sig account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 performs the action " +
          "{\"type\":\"order\",\"note\":\"\\u202e\\u200bsdnuf\\n\\ud83d\\ude00\"," +
          "\"to\":\"0xABCDEF7890123456789012345678901234567890\"}."
      )
      assert.strictEqual(
        summary.at(-1),
        "Caution: The address at to is in mixed case: sign and send it in lower case."
      )
    }))

  it.effect("travels as JSON, however it is carried", () =>
    Effect.gen(function*() {
      for (const given of [request, l1Request, { ...l1Request, action: { type: "z", b: 2n ** 64n - 1n, a: null } }]) {
        const proposal = yield* MultiSigProposal.propose(given)
        const text = yield* MultiSigProposal.toJson(proposal)
        assert.deepStrictEqual(yield* MultiSigProposal.fromJson(carried(text)), proposal)
        const encoded = yield* Schema.encodeEffect(MultiSigProposal.MultiSigProposal)(proposal)
        assert.deepStrictEqual(yield* Schema.decodeEffect(MultiSigProposal.MultiSigProposal)(encoded), proposal)
      }
    }))

  it.effect.prop(
    "travels with any action",
    { values: Values, nonce: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8_000_000_000_000_000 })) },
    ({ nonce, values }) =>
      Effect.gen(function*() {
        // JSON has no negative zero
        const items = values.filter((value) => !Predicate.isString(value) || value.isWellFormed())
          .map((value) => Object.is(value, -0) ? 0 : value)
        const action = { type: "free", items, big: 18_446_744_073_709_551_615n, nested: { z: items, a: {} } }
        const proposal = yield* MultiSigProposal.propose({ ...l1Request, action, nonce })
        const received = yield* MultiSigProposal.fromJson(carried(yield* MultiSigProposal.toJson(proposal)))
        assert.deepStrictEqual(received, proposal)
      })
  )

  it.effect("believes no digest, typed data or summary of the sender", () =>
    Effect.gen(function*() {
      const proposal = yield* MultiSigProposal.propose(request)
      const text = yield* MultiSigProposal.toJson(proposal)
      const lying = altered(text, { summary: ["Nothing happens."], typedData: { message: {} } })
      assert.deepStrictEqual(yield* MultiSigProposal.fromJson(lying), proposal)

      const l1 = yield* MultiSigProposal.toJson(yield* MultiSigProposal.propose(l1Request))
      const changes: ReadonlyArray<readonly [string, object]> = [
        [text, { digest: `0x${"11".repeat(32)}` }],
        [text, { multiSigUser: vault }],
        [text, { outerSigner: vault }],
        [text, { action: JSON.stringify({ ...delegation, wei: 5 }) }],
        [l1, { network: "mainnet" }],
        [l1, { nonce: nonce + 1 }],
        [l1, { vaultAddress: request.multiSigUser }],
        [l1, { expiresAfter: nonce + 60_001 }],
        [l1, { action: "{\"type\":\"evmUserModify\",\"usingBigBlocks\":false}" }]
      ]
      for (const [given, change] of changes) {
        const error = yield* Effect.flip(MultiSigProposal.fromJson(altered(given, change)))
        assert.strictEqual(error._tag, "ProposalAltered")
        const decode = Schema.decodeUnknownEffect(MultiSigProposal.MultiSigProposal)
        assert.strictEqual((yield* Effect.flip(decode(JSON.parse(altered(given, change)))))._tag, "SchemaError")
      }
      // what is in memory is not believed either
      const inMemory = yield* Effect.flip(
        MultiSigProposal.approve({ ...proposal, outerSigner: proposal.multiSigUser }, cosignerOf(1))
      )
      assert.strictEqual(inMemory._tag, "ProposalAltered")
    }))

  it.effect("refuses what cannot be proposed", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [Partial<MultiSigProposal.ProposalRequest>, ReadonlyArray<string | number>]> =
        [
          [{ action: { type: "multiSig" } }, ["action", "type"]],
          [{ action: { ...delegation, nonce: nonce + 1 } }, ["action", "nonce"]],
          [{ action: { ...delegation, hyperliquidChain: "Testnet" } }, ["payload", "action", "hyperliquidChain"]],
          [{ action: { type: "tokenDelegate", amount: "1" } }, ["action", "amount"]],
          [{ action: { type: "mystery", signatureChainId: "0x1" } }, ["action", "type"]],
          [{ threshold: 6 }, ["threshold"]],
          [{ threshold: 0 }, ["threshold"]],
          [{ multiSigUser: "0x1" }, ["multiSigUser"]],
          [{ sentAction: { type: "evmUserModify" } }, ["sentAction"]]
        ]
      for (const [change, path] of cases) {
        const error = yield* Effect.flip(MultiSigProposal.propose({ ...request, ...change }))
        assert(error._tag === "UnsignableAction")
        assert.deepStrictEqual(error.path, path)
      }
    }))

  it.effect("refuses a text that is no proposal", () =>
    Effect.gen(function*() {
      const text = yield* MultiSigProposal.toJson(yield* MultiSigProposal.propose(request))
      for (
        const given of [
          "",
          "[]",
          "{}",
          altered(text, { action: "{" }),
          altered(text, { action: {} }),
          `{"nonce":1,${text.slice(1)}`
        ]
      ) {
        const error = yield* Effect.flip(MultiSigProposal.fromJson(given))
        assert(error._tag === "MultiSigMalformed")
        assert.isAbove(error.faults.length, 0)
      }
    }))
})

describe("MultiSigApproval", () => {
  it.effect("signs, and travels as JSON", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const approval = yield* MultiSigProposal.approve(proposal, cosignerOf(3))
      assert.strictEqual(approval.signer, "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65")
      assert.strictEqual(approval.digest, proposal.digest)
      assert.deepStrictEqual(
        yield* MultiSigProposal.approvalFromJson(MultiSigProposal.approvalToJson(approval)),
        approval
      )
      const error = yield* Effect.flip(MultiSigProposal.approvalFromJson("{\"digest\":1}"))
      assert.strictEqual(error._tag, "MultiSigMalformed")
    }))

  it.effect("accepts a signature made elsewhere in any usual form, once it is shown to be the co-signer's", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const { signature } = yield* MultiSigProposal.approve(proposal, cosignerOf(1))
      const { r, s, v } = signature
      const address = cosignerOf(1).address
      for (const given of [signature, `${r}${s.slice(2)}${v.toString(16)}`, { r, s }, { r, s, v: v - 27 }]) {
        const approval = yield* MultiSigProposal.accept(proposal, address, given)
        assert.deepStrictEqual(approval.signature, signature)
      }
      const other = yield* Effect.flip(MultiSigProposal.accept(proposal, cosignerOf(2).address, signature))
      assert(other._tag === "WrongSigner")
      assert.deepStrictEqual([other.role, other.recovered], ["cosigner", address.toLowerCase()])
      const none = yield* Effect.flip(MultiSigProposal.accept(proposal, address, "0x12"))
      assert(none._tag === "WrongSigner")
      assert.isUndefined(none.recovered)
    }))

  it.effect("refuses before it asks for a signature", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const silent = (index: number) => ({
        address: cosignerOf(index).address,
        sign: () => Effect.die("the key was asked")
      })
      const proposal = yield* MultiSigProposal.propose(request)
      const stranger = yield* Effect.flip(MultiSigProposal.approve(proposal, silent(5)))
      assert(stranger._tag === "CosignerNotAuthorized")
      assert.strictEqual(stranger.signer, "0x976ea74026e726554db657fa54763abd0c3a0aa9")
      const approval = yield* MultiSigProposal.approve(proposal, cosignerOf(2))
      const again = yield* Effect.flip(MultiSigProposal.approve(proposal, silent(2), [approval]))
      assert.strictEqual(again._tag, "AlreadyApproved")
      const expiring = yield* MultiSigProposal.propose(l1Request)
      yield* TestClock.setTime(nonce + 59_999)
      yield* MultiSigProposal.approve(expiring, cosignerOf(2))
      yield* TestClock.setTime(nonce + 60_000)
      const late = yield* Effect.flip(MultiSigProposal.approve(expiring, silent(2)))
      assert(late._tag === "ProposalExpired")
      assert.deepStrictEqual([late.because, late.deadline, late.now], ["expiresAfter", nonce + 60_000, nonce + 60_000])
    }))

  it.effect("fails as the key does, and where the key is another's", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const refusing = { address: cosignerOf(1).address, sign: () => Effect.fail("no" as const) }
      assert.strictEqual(yield* Effect.flip(MultiSigProposal.approve(proposal, refusing)), "no")
      const wrong = { ...cosignerOf(2), address: cosignerOf(1).address }
      const error = yield* Effect.flip(MultiSigProposal.approve(proposal, wrong))
      assert(error._tag === "WrongSigner")
    }))
})
