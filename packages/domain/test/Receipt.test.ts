import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { isPreconfirmed, Receipt, ReceiptLog, ReceiptStatus } from "@trigate/domain/evm/EvmResources"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

import anvil from "./fixtures/l2-anvil.json" with { type: "json" }
import opStack from "./fixtures/l2-op-stack.json" with { type: "json" }
import zksync from "./fixtures/l2-zksync.json" with { type: "json" }

type HttpTransport = { readonly [field: string]: unknown }

const anvilReceipts: ReadonlyArray<{ readonly name: string; readonly wire: HttpTransport }> = anvil.records.flatMap((
  { body, name }
) =>
  Predicate.isObject(body) && "result" in body && Predicate.isObject(body.result) && "logs" in body.result
    ? [{ name, wire: body.result }]
    : []
)
const recorded: ReadonlyArray<{ readonly name: string; readonly wire: HttpTransport }> = [
  ...opStack.receipts.map(({ name, response }) => ({ name, wire: response.result as HttpTransport })),
  ...zksync.receipts.map(({ name, response }) => ({ name, wire: response.result as HttpTransport })),
  ...anvilReceipts
]

const decode = Schema.decodeUnknownSync(Receipt)
const encode = Schema.encodeSync(Receipt)
const roundTrip = (value: unknown): unknown => encode(decode(value))
const logsOf = (wire: HttpTransport) => wire["logs"] as ReadonlyArray<HttpTransport>
const without = (wire: HttpTransport, ...fields: ReadonlyArray<string>): HttpTransport =>
  Object.fromEntries(Object.entries(wire).filter(([field]) => !fields.includes(field)))

const documented = new Set([
  "transactionHash",
  "transactionIndex",
  "blockHash",
  "blockNumber",
  "from",
  "to",
  "cumulativeGasUsed",
  "gasUsed",
  "effectiveGasPrice",
  "contractAddress",
  "logs",
  "logsBloom",
  "type",
  "status"
])
const documentedOfLog = new Set([
  "address",
  "topics",
  "data",
  "blockHash",
  "blockNumber",
  "transactionHash",
  "transactionIndex",
  "logIndex",
  "removed"
])
const extrasOf = (wire: HttpTransport, known: ReadonlySet<string>) =>
  Object.keys(wire).filter((field) => !known.has(field))

const [first] = recorded
assert.isDefined(first)
const wire: HttpTransport = first.wire

describe("Receipt, recorded", () => {
  it("finds every recorded receipt", () => {
    assert.strictEqual(opStack.receipts.length, 17)
    assert.strictEqual(zksync.receipts.length, 5)
    assert.deepStrictEqual(anvilReceipts.map(({ name }) => name), [
      "contract creation",
      "call with 3 logs",
      "failed transaction (status 0x0)",
      "same transaction, mined",
      "hash with upper-case hex"
    ])
  })

  // no recorded node pads a quantity or spells a status otherwise, so there is no exception to state
  it.each(recorded)("$name: encodes back to the recorded value", ({ wire }) => {
    assert.deepStrictEqual(roundTrip(wire), wire)
  })

  it.each(recorded)("$name: keeps every extra as it came", ({ wire }) => {
    const receipt: HttpTransport = decode(wire)
    for (const field of extrasOf(wire, documented)) assert.strictEqual(receipt[field], wire[field], field)
    const logs = receipt["logs"] as ReadonlyArray<HttpTransport>
    assert.strictEqual(logs.length, logsOf(wire).length)
    for (const [index, log] of logsOf(wire).entries()) {
      for (const field of extrasOf(log, documentedOfLog)) assert.strictEqual(logs[index]?.[field], log[field], field)
    }
  })

  it("sees the extras of all recorded families", () => {
    assert.deepStrictEqual([...new Set(recorded.flatMap(({ wire }) => extrasOf(wire, documented)))].toSorted(), [
      "blobGasPrice",
      "blobGasUsed",
      "blockTimestamp",
      "daFootprintGasScalar",
      "depositNonce",
      "depositReceiptVersion",
      "l1BaseFeeScalar",
      "l1BatchNumber",
      "l1BatchTxIndex",
      "l1BlobBaseFee",
      "l1BlobBaseFeeScalar",
      "l1Fee",
      "l1FeeScalar",
      "l1GasPrice",
      "l1GasUsed",
      "l2ToL1Logs",
      "operatorFeeConstant",
      "operatorFeeScalar",
      "root"
    ])
    const logs = recorded.flatMap(({ wire }) => logsOf(wire))
    assert.deepStrictEqual([...new Set(logs.flatMap((log) => extrasOf(log, documentedOfLog)))].toSorted(), [
      "blockTimestamp",
      "l1BatchNumber",
      "logType",
      "transactionLogIndex"
    ])
  })

  it("reads the documented fields", () => {
    const receipt = decode(wire)
    assert.strictEqual(receipt.transactionIndex, 0n)
    assert.strictEqual(receipt.blockNumber, 0x2b65895n)
    assert.strictEqual(receipt.cumulativeGasUsed, 142342n)
    assert.strictEqual(receipt.gasUsed, 142342n)
    assert.strictEqual(receipt.from, "0x17281460228691b044e080a5f5257dce8e47f79c")
    assert.strictEqual(receipt.to, "0xf44938b0125a6662f9536281ad2cd6c499f22004")
    assert.isNull(receipt.contractAddress)
    assert.strictEqual(receipt.status, "success")
    assert.isFalse("effectiveGasPrice" in receipt)
    assert.isFalse("type" in receipt)
    assert.deepStrictEqual(receipt.logs.map(({ logIndex }) => logIndex), [0n, 1n, 2n, 3n, 4n])
    assert.strictEqual(receipt["l1Fee"], "0x33931b320a2c")
    assert.strictEqual(receipt["l1FeeScalar"], "1")
  })

  it("reads a price in wei, a type, and a failed transaction", () => {
    const failed = anvilReceipts.find(({ name }) => name.startsWith("failed"))
    assert.isDefined(failed)
    const receipt = decode(failed.wire)
    assert.strictEqual(receipt.status, "failure")
    assert.strictEqual(receipt.type, "0x2")
    assert.strictEqual(receipt.effectiveGasPrice, BigInt(String(failed.wire["effectiveGasPrice"])))
  })
})

describe("Receipt", () => {
  it.each(
    [
      ["0x1", "success", "0x1"],
      ["0x0", "failure", "0x0"],
      ["1", "success", "0x1"],
      ["0", "failure", "0x0"],
      [1, "success", "0x1"],
      [0, "failure", "0x0"]
    ] as const
  )("status %j is %s and is written %s", (spelling, status, written) => {
    const receipt = decode({ ...wire, status: spelling })
    assert.strictEqual(receipt.status, status)
    assert.strictEqual(encode(receipt).status, written)
  })

  it.each(["0x2", "0x01", "success", "", 2, true, null, undefined])("status %j is refused", (status) => {
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(ReceiptStatus)(status)))
  })

  it.each(["type", "effectiveGasPrice", "to", "contractAddress", "root"])("%s may be missing or null", (field) => {
    for (const variant of [without(wire, field), { ...wire, [field]: null }]) {
      assert.deepStrictEqual(roundTrip(variant), variant)
    }
  })

  it("a log's removed may be missing", () => {
    const variant = { ...wire, logs: logsOf(wire).map((log) => without(log, "removed")) }
    assert.deepStrictEqual(roundTrip(variant), variant)
  })

  it.each([
    "transactionHash",
    "transactionIndex",
    "blockHash",
    "blockNumber",
    "from",
    "cumulativeGasUsed",
    "gasUsed",
    "logs",
    "logsBloom",
    "status"
  ])("%s must be there", (field) => {
    const failure = Result.getOrThrow(Result.flip(Schema.decodeUnknownResult(Receipt)(without(wire, field))))
    assert.strictEqual(failure.message, `Missing key\n  at ["${field}"]`)
  })

  it("writes a padded quantity in its minimal form and leaves the spelling of extras alone", () => {
    const padded = { ...wire, gasUsed: "0x00022c06", blockNumber: "0x0", l1Fee: "0x0001", l1FeeScalar: "0.684" }
    assert.deepStrictEqual(roundTrip(padded), { ...padded, gasUsed: "0x22c06" })
  })

  it("keeps an extra integer above 2^53 digit for digit", () => {
    const text = Json.stringify({ ...wire, l1Fee: 2n ** 80n + 1n })
    const receipt = decode(Result.getOrThrow(Json.parse(text)))
    assert.strictEqual(receipt["l1Fee"], 2n ** 80n + 1n)
    assert.include(Json.stringify(encode(receipt)), "\"l1Fee\":1208925819614629174706177")
  })

  it.each([
    ["an address of 19 bytes", { from: `0x${"1".repeat(38)}` }],
    ["a quantity without 0x", { gasUsed: "22c06" }],
    ["a quantity as a JSON number", { gasUsed: 142342 }],
    ["a hash of 31 bytes", { blockHash: `0x${"0".repeat(62)}` }],
    ["five topics", { logs: [{ ...logsOf(wire)[0], topics: Array.from({ length: 5 }, () => wire["blockHash"]) }] }],
    ["logs that are no array", { logs: {} }],
    ["a type that is no hex", { type: "legacy" }]
  ])("refuses %s", (_case, change) => {
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(Receipt)({ ...wire, ...change })))
  })

  it("is pre-confirmed while its block hash is all zeros", () => {
    assert.isFalse(isPreconfirmed(decode(wire)))
    assert.isTrue(isPreconfirmed(decode({ ...wire, blockHash: `0x${"0".repeat(64)}` })))
    assert.isFalse(isPreconfirmed(decode({ ...wire, blockHash: `0x${"0".repeat(63)}1` })))
  })

  // JSON has no negative zero
  const Integer = Schema.Int.check(Schema.makeFilter((value) => !Object.is(value, -0)))
  const Extra = Schema.Union([Schema.Null, Schema.Boolean, Schema.String, Integer, Schema.Array(Schema.String)])
  const ExtraName = Schema.String.check(
    // V8 13.6 misreads a key of one character that is an escape
    Schema.makeFilter((field) => field.length !== 1 && !documented.has(field) && !documentedOfLog.has(field))
  )
  it.effect.prop("any receipt with any extras comes back from its wire text", {
    receipt: Schema.toType(Receipt.schema),
    log: Schema.toType(ReceiptLog.schema),
    extras: Schema.Record(ExtraName, Extra)
  }, ({ extras, log, receipt }) =>
    Effect.gen(function*() {
      const whole = { ...extras, ...receipt, logs: [{ ...extras, ...log }] } as Receipt
      const text = Json.stringify(yield* Schema.encodeEffect(Receipt)(whole))
      const again = yield* Schema.decodeUnknownEffect(Receipt)(yield* Effect.fromResult(Json.parse(text)))
      assert.deepStrictEqual(again, whole)
    }))
})
