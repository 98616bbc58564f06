import { assert, describe, it } from "@effect/vitest"
import type { RejectionReason } from "@trigate/domain/actions/ActionOutcome"
import { ActionEntry, classifyRejection } from "@trigate/domain/actions/ActionOutcome"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Fill } from "@trigate/domain/info/Account"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import recorded from "./fixtures/exchange-bodies.json" with { type: "json" }

const reasons: { readonly [id: string]: string } = {
  "err-extra-agent": "Unclassified",
  "err-no-user": "UnknownSigner",
  "err-no-user-old": "UnknownSigner",
  "err-must-deposit": "UnknownSigner",
  "err-lab-01": "NonceDuplicate",
  "err-lab-02": "NonceTooLow",
  "err-lab-03": "NonceTooHigh",
  "err-lab-04": "NonceMismatch",
  "err-lab-05": "WrongNetwork",
  "err-lab-06": "MultiSig",
  "err-lab-07": "MultiSig",
  "err-lab-08": "MultiSig",
  "err-lab-09": "MultiSig",
  "err-lab-10": "MultiSig",
  "err-lab-11": "MultiSig",
  "err-lab-12": "MultiSig",
  "err-lab-13": "VaultUnknown",
  "err-expired": "Expired",
  "err-signer-inactive": "NotValidator",
  "err-unknown-validator": "Refused",
  "err-insufficient-stake": "Refused",
  "err-address-limit": "AddressRateLimited"
}

const texts = recorded.bodies.flatMap(({ body, id }) =>
  body?.status === "err" && typeof body.response === "string" ? [{ id, text: body.response }] : []
)

describe("classifyRejection", () => {
  it("knows every collected refusal", () => {
    assert.deepStrictEqual(texts.map(({ id }) => id).toSorted(), Object.keys(reasons).toSorted())
  })

  for (const { id, text } of texts) {
    it(`reads "${text.slice(0, 50)}"`, () => {
      const rejection = classifyRejection(text)
      assert.strictEqual(rejection.reason, reasons[id])
      assert.strictEqual(rejection.message, text)
      assert.strictEqual(
        rejection.signer,
        reasons[id] === "UnknownSigner" ? "0x0123456789abcdef0123456789abcdef01234567" : undefined
      )
    })
  }

  it("other texts of the venue's list", () => {
    assert.strictEqual(classifyRejection("Multi-sig authorized user must exist on L1").reason, "MultiSig")
    assert.strictEqual(classifyRejection("Agents do not have permission to perform this").reason, "Refused")
    assert.strictEqual(classifyRejection("Unexpected error (code=148)").reason, "Unclassified")
    assert.strictEqual(classifyRejection("").reason, "Unclassified")
  })
})

describe("the refusals of orders", () => {
  const refusals: ReadonlyArray<readonly [text: string, reason: RejectionReason]> = [
    ["Price must be divisible by tick size. asset=4", "TickSize"],
    ["Order has invalid price.", "TickSize"],
    ["Order has invalid size.", "LotSize"],
    ["Order has zero size.", "LotSize"],
    ["Order must have minimum value of $10. asset=4", "MinimumNotional"],
    ["Order must have minimum value of 10 USDC.", "MinimumNotional"],
    ["TWAP order value too small. Min is $1200, which is $10 per minute.", "MinimumNotional"],
    ["Insufficient margin to place order. asset=4", "InsufficientMargin"],
    ["Order has insufficient spot balance to trade", "InsufficientBalance"],
    ["Insufficient spot balance asset=10107", "InsufficientBalance"],
    ["Insufficient balance for withdrawal", "InsufficientBalance"],
    ["Post only order would have immediately matched, bbo was 1891.4@1891.5. asset=4", "PostOnlyWouldCross"],
    ["Order could not immediately match against any resting orders. asset=4", "NoImmediateMatch"],
    ["No liquidity available for market order.", "NoImmediateMatch"],
    ["Reduce only order would increase position. asset=159", "ReduceOnly"],
    ["Order price too far from oracle", "PriceBand"],
    ["Price too far from oracle", "PriceBand"],
    ["Order price cannot be more than 80% away from the reference price", "PriceBand"],
    ["Invalid TP/SL price. asset=4", "TriggerPrice"],
    ["Order would increase open interest while open interest is capped", "OpenInterestCap"],
    ["Order would increase open interest too quickly", "OpenInterestCap"],
    ["Order price too aggressive while at open interest cap", "OpenInterestCap"],
    ["Order would cause position to exceed margin tier limit at current leverage", "PositionLimit"],
    ["Order was never placed, already canceled, or filled. asset=4", "UnknownOrder"],
    ["TWAP was never placed, already canceled, or filled.", "UnknownOrder"],
    ["Cannot modify canceled or filled order", "UnknownOrder"]
  ]
  it.each(refusals)("%s", (text, reason) => {
    assert.deepInclude(classifyRejection(text), { reason, message: text })
    assert.strictEqual(classifyRejection(`L1 error: ${text}`).reason, reason)
  })

  it.prop("any other text is unclassified and kept whole", [Schema.String], ([text]) => {
    const unknown = `?${text}`
    assert.deepInclude(classifyRejection(unknown), { reason: "Unclassified", message: unknown })
  })
})

describe("an unknown signer, read together with the recovered one", () => {
  const named = "0x0123456789abcdef0123456789abcdef01234567"
  const text = `User or API Wallet ${named} does not exist.`

  it("the same address: the signature is right, the account is not known", () => {
    const rejection = classifyRejection(text, "0x0123456789ABCDEF0123456789abcdef01234567")
    assert.strictEqual(rejection.reason, "UnknownSigner")
    assert.strictEqual(rejection.signer, named)
  })

  it("another address: the venue hashed other bytes than were signed", () => {
    const recovered = "0x00000000000000000000000000000000000000aa"
    const rejection = classifyRejection(text, recovered)
    assert.strictEqual(rejection.reason, "WrongSignature")
    assert.strictEqual(rejection.signer, named)
    assert.strictEqual(rejection.recovered, recovered)
  })

  it("changes nothing about a refusal for another reason", () => {
    assert.strictEqual(classifyRejection("Nonce mismatch.", named).reason, "NonceMismatch")
  })
})

describe("an order id", () => {
  const ids = ["0", "77738308", "9007199254740991", "9007199254740993", "18446744073709551615"]
  const fill = (oid: string) =>
    `{"coin":"BTC","px":"1","sz":"1","side":"B","time":0,"startPosition":"0","dir":"Buy","closedPnl":"0",` +
    `"hash":"0x${"00".repeat(32)}","oid":${oid},"crossed":true,"fee":"0"}`

  it("is equal in the response to an action and in the order's fill, also above 2^53", () => {
    for (const id of ids) {
      const decoded = Schema.decodeUnknownSync(Fill)(Result.getOrThrow(Json.parse(fill(id))))
      const { oid } = decoded
      const entry = Result.getOrThrow(Json.parse(`{"_tag":"Resting","oid":${id}}`))
      const resting = Schema.decodeUnknownSync(ActionEntry)(entry)
      assert.strictEqual(resting._tag === "Resting" ? resting.oid : undefined, oid)
      assert.strictEqual(String(oid), id)
      assert.strictEqual(Json.stringify(Schema.encodeSync(Fill)(decoded)), fill(id))
    }
  })

  it("is not negative, and has 64 bits", () => {
    for (const id of ["-1", "18446744073709551616", "1.5"]) {
      const parsed = Result.getOrThrow(Json.parse(fill(id)))
      assert.isTrue(Option.isNone(Schema.decodeUnknownOption(Fill)(parsed)), id)
    }
  })
})
