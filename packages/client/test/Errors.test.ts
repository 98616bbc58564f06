import { assert, describe, it } from "@effect/vitest"
import { requireAll } from "@trigate/domain/actions/ActionOutcome"
import * as Json from "@trigate/domain/encoding/Encoding"
import { GatewayError, servedFailures } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import { flipReason } from "@trigate/testing/Reason"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { samples } from "../../domain/test/gatewayErrorSamples.ts"
import { methods, nonce, signed } from "./methods.ts"
import type { Scripted, Sent } from "./scripted.ts"
import { idOf, withClient } from "./scripted.ts"

type Tag = keyof typeof samples

const encode = Schema.encodeSync(GatewayError)
const isGatewayError = Schema.is(GatewayError)

const problem = (tag: Tag): Scripted => ({
  status: samples[tag].status,
  type: "application/problem+json",
  body: Json.stringify(encode(samples[tag]))
})
const inJsonRpc = (tag: Tag) => (sent: Sent): Scripted => ({
  body: JsonRpc.errorText(idOf(sent), JsonRpc.errorObject(samples[tag]))
})
const inTokenRpc = (tag: Tag) => (): Scripted => ({ body: TokenRpc.errorText(samples[tag])("1") })

const common = servedFailures.map((failure) => failure.fields._tag.schema.literal)
const ofActions = [
  "UnsupportedAction",
  "NonceOutOfWindow",
  "NonceMismatch",
  "NonceAlreadyUsed",
  "InvalidSignature",
  "SignerNotAllowed",
  "PolicyViolation",
  "OutcomeUnknown"
] as const
const addresses = ["InvalidAddress"] as const
/** Streams repeat what passes; the rest ends them. */
const endingStreams = [
  "InvalidAddress",
  "HistoryUnavailable",
  "ChainNotConfigured",
  "UpstreamForbidden",
  "Unauthorized"
] as const
const administering = ["UpstreamUnavailable", "NotPermitted", "Unauthorized", "QuotaExceeded", "Overloaded"] as const
const changing = [...administering, "InvalidRequest", "PayloadTooLarge"] as const

type Declared = readonly [tags: ReadonlyArray<Tag>, by: (tag: Tag) => (sent: Sent) => Scripted]

const isTag = (tag: unknown): tag is Tag => typeof tag === "string" && tag in samples

/** The errors of the operations of a table. */
const ofTable = (group: string, operations: { readonly [name: string]: Operation }, by: Declared[1]) =>
  Object.fromEntries(
    Object.entries(operations).map(([name, { failures }]): [string, Declared] => [
      `${group}.${name}`,
      [[...failures.map(({ ast }) => SchemaAST.resolveIdentifier(ast)).filter(isTag), ...common], by]
    ])
  )

/** The errors that each method declares, and how the gateway sends them. */
const declared: {
  readonly [name: string]: Declared
} = {
  "exchange.submit": [[...ofActions, ...common], (tag) => () => problem(tag)],
  "exchange.resolve": [[...ofActions, ...common], (tag) => () => problem(tag)],
  "exchange.outcome": [["ActionNotFound", "InvalidRequest", ...administering], (tag) => () => problem(tag)],
  "exchange.nonces": [["InvalidRequest", "PayloadTooLarge", ...administering], (tag) => () => problem(tag)],
  ...Object.fromEntries(
    ["arm", "beat", "disarm", "get"].map((name): [string, Declared] => [
      `switches.${name}`,
      [["InvalidRequest", "PayloadTooLarge", ...administering], (tag) => () => problem(tag)]
    ])
  ),
  "exchange.inspect": [["InvalidRequest", "PayloadTooLarge"], (tag) => () => problem(tag)],
  // it says itself which coin is unknown
  "info.asset": [common, (tag) => () => problem(tag)],
  "info.raw": [["UnknownAsset", ...common], (tag) => () => problem(tag)],
  ...ofTable("info", infoOperations, (tag) => () => problem(tag)),
  ...ofTable("evm", evmOperations, inJsonRpc),
  ...ofTable("layer2", layer2Operations, inJsonRpc),
  "evm.sendRawTransaction": [["OutcomeUnknown", "PolicyViolation", ...common], inJsonRpc],
  "layer2.sendRawTransaction": [["OutcomeUnknown", "PolicyViolation", ...common], inJsonRpc],
  "info.candles": [["UnknownAsset", ...common], (tag) => () => problem(tag)],
  "candles.list": [["ArchiveNotConfigured", "ArchiveUnavailable", ...common], (tag) => () => problem(tag)],
  "candles.file": [
    ["ArchiveNotConfigured", "ArchiveUnavailable", "UnknownAsset", ...common],
    (tag) => () => problem(tag)
  ],
  "candles.bars": [
    ["ArchiveNotConfigured", "ArchiveUnavailable", "UnknownAsset", ...common],
    (tag) => () => problem(tag)
  ],
  "tokens.getTokenData": [["InvalidAddress", "TokenNotFound", ...common], (tag) => () => problem(tag)],
  "tokens.getTokenContract": [["InvalidAddress", "TokenNotFound", ...common], inTokenRpc],
  "tokens.packAddress": [[...addresses, ...common], inTokenRpc],
  "tokens.unpackAddress": [[...addresses, ...common], inTokenRpc],
  "tokens.detectAddress": [[...addresses, ...common], inTokenRpc],
  "tokens.transactions": [endingStreams, (tag) => () => problem(tag)],
  "tokens.jettonTransfers": [["TokenNotFound", ...endingStreams], (tag) => () => problem(tag)],
  "tokens.call": [[...addresses, ...common], inTokenRpc],
  "health.ready": [["UpstreamUnavailable"], (tag) => () => problem(tag)],
  "health.metrics": [administering, (tag) => () => problem(tag)],
  "admin.actions": [administering, (tag) => () => problem(tag)],
  "admin.history": [administering, (tag) => () => problem(tag)],
  "admin.minute": [administering, (tag) => () => problem(tag)],
  "admin.settings": [administering, (tag) => () => problem(tag)],
  "admin.forget": [administering, (tag) => () => problem(tag)],
  "admin.resolve": [administering, (tag) => () => problem(tag)],
  "admin.keys": [administering, (tag) => () => problem(tag)],
  "admin.createKey": [changing, (tag) => () => problem(tag)],
  "admin.rotateKey": [changing, (tag) => () => problem(tag)],
  "admin.revokeKeys": [changing, (tag) => () => problem(tag)],
  "admin.guard": [administering, (tag) => () => problem(tag)],
  "admin.haltGuard": [changing, (tag) => () => problem(tag)],
  "admin.resumeGuard": [changing, (tag) => () => problem(tag)],
  "admin.rateLimits": [administering, (tag) => () => problem(tag)],
  "admin.requests": [administering, (tag) => () => problem(tag)]
}

const failureOf = (name: string, answer: (sent: Sent) => Scripted) =>
  withClient(answer, (client) => {
    const method = methods[name]
    return method === undefined ? Effect.die(`no method ${name}`) : flipReason(Effect.asVoid(method.call(client)))
  })

describe("every error that a method declares comes back as it was", () => {
  it("and every class is declared by some method", () => {
    const all = new Set(Object.values(declared).flatMap(([tags]) => tags))
    assert.sameMembers([...all], Object.keys(samples))
    assert.sameMembers(Object.keys(declared), Object.keys(methods))
  })

  const all = Object.entries(declared).flatMap(([name, [tags, by]]) => tags.map((tag) => ({ name, tag, by })))
  for (const { by, name, tag } of sample("errors of methods", all, 300, ({ name }) => name)) {
    it.effect(`${name}: ${tag}`, () =>
      Effect.gen(function*() {
        const failed = yield* failureOf(name, by(tag))
        // a second sending leaves the first one as unknown as it was, and says why
        const error = name === "exchange.resolve" && failed._tag === "StillUnknown" ? failed.reason : failed
        assert.strictEqual(error.constructor, samples[tag].constructor)
        assert.isTrue(isGatewayError(error))
        if (isGatewayError(error)) assert.deepStrictEqual(encode(error), encode(samples[tag]))
      }))
  }

  it.effect("also out of a problem document that comes to a JSON-RPC call, as a proxy in front sends it", () =>
    Effect.gen(function*() {
      for (const name of ["evm.gasPrice", "layer2.getTransactionReceipt", "tokens.detectAddress"]) {
        const error = yield* failureOf(name, () => problem("QuotaExceeded"))
        assert.isTrue(isGatewayError(error))
        if (isGatewayError(error)) assert.deepStrictEqual(encode(error), encode(samples.QuotaExceeded))
      }
    }))

  it.effect("an error that a method does not declare is told by its status", () =>
    Effect.gen(function*() {
      const error = yield* failureOf("info.spotMeta", () => problem("UnknownAsset"))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
    }))
})

describe("a status without a body of ours", () => {
  for (
    const [status, tag] of [[400, "InvalidRequest"], [401, "UpstreamForbidden"], [429, "UpstreamRateLimited"], [
      503,
      "UpstreamUnavailable"
    ]] as const
  ) {
    it.effect(`${status} is ${tag}, with the seconds of Retry-After`, () =>
      Effect.gen(function*() {
        for (const name of ["info.spotMeta", "evm.gasPrice", "tokens.detectAddress"]) {
          const error = yield* failureOf(name, () => ({ status, type: "text/plain", retryAfter: "17", body: "no" }))
          assert.strictEqual(error._tag, tag, name)
          if (status === 429 || status === 503) assert.deepInclude(error, { retryAfter: 17 }, name)
        }
      }))
  }

  for (const retryAfter of ["-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "9".repeat(30)]) {
    it.effect(`a Retry-After that is no number of seconds is left out: ${retryAfter}`, () =>
      Effect.gen(function*() {
        const error = yield* failureOf("info.spotMeta", () => ({ status: 429, retryAfter, body: "slow down" }))
        assert.strictEqual(error._tag, "UpstreamRateLimited")
        assert.notProperty(error, "retryAfter")
      }))
  }
})

describe("the venue's refusal of a signed action", () => {
  const refusals = [
    ["User or API Wallet 0x17281460228691b044e080a5f5257dce8e47f79c does not exist.", "UnknownSigner"],
    ["Must deposit before performing actions. User: 0x17281460228691b044e080a5f5257dce8e47f79c", "UnknownSigner"],
    ["Invalid nonce: duplicate nonce 1", "NonceDuplicate"],
    ["Invalid nonce: nonce too low", "NonceTooLow"],
    ["Invalid nonce: nonce too high", "NonceTooHigh"],
    ["L1 error: Nonce mismatch.", "NonceMismatch"],
    ["Mainnet and testnet require different signature.", "WrongNetwork"],
    ["Action already expired", "Expired"],
    ["Multi-sig threshold not met", "MultiSig"],
    ["Vault not registered: 0x17281460228691b044e080a5f5257dce8e47f79c", "VaultUnknown"],
    ["Signer invalid or inactive for current epoch", "NotValidator"],
    ["Insufficient stake", "Refused"],
    ["Price must be divisible by tick size.", "TickSize"],
    ["Too many cumulative requests sent", "AddressRateLimited"],
    ["Failed to deserialize the JSON body into the target type", "ShapeRefused"],
    ["Something that nobody has seen before", "Unclassified"]
  ] as const
  for (const [message, reason] of refusals) {
    it.effect(`${reason}: ${message}`, () =>
      withClient(
        () => ({ body: JSON.stringify({ status: "err", response: message }) }),
        ({ exchange }) =>
          Effect.gen(function*() {
            const error = yield* flipReason(exchange.submit(signed))
            assert.strictEqual(error._tag, "ActionRejected")
            assert.deepInclude(error, { reason, message })
            if (reason === "UnknownSigner") {
              assert.deepInclude(error, { signer: "0x17281460228691b044e080a5f5257dce8e47f79c" })
            } else {
              assert.notProperty(error, "signer")
            }
          })
      ))
  }

  it.effect("of one leg is an entry, beside those of the other legs; `requireAll` makes it the error", () =>
    withClient(
      () => ({
        body: `{"status":"ok","response":{"type":"order","data":{"statuses":["waitingForFill",` +
          `{"error":"Insufficient margin to place order. asset=1"},{"resting":{"oid":9007199254740993}}]}}}`
      }),
      ({ exchange }) =>
        Effect.gen(function*() {
          const result = yield* exchange.submit({ ...signed, action: { type: "order", orders: [{}, {}, {}] } })
          const message = "Insufficient margin to place order. asset=1"
          const entries = [
            { _tag: "Waiting", kind: "waitingForFill" },
            { _tag: "Rejected", reason: "InsufficientMargin", message },
            { _tag: "Resting", oid: 9_007_199_254_740_993n }
          ] as const
          assert.deepStrictEqual(result.entries, entries)
          const error = yield* flipReason(requireAll(result))
          assert.strictEqual(error._tag, "ActionRejected")
          assert.deepInclude(error, {
            reason: "InsufficientMargin",
            message,
            entries,
            response: {
              type: "order",
              data: {
                statuses: ["waitingForFill", { error: message }, { resting: { oid: 9_007_199_254_740_993n } }]
              }
            }
          })
        })
    ))

  it.effect("HTTP 422 is a shape that it refused; HTTP 500 says nothing of the outcome", () =>
    Effect.gen(function*() {
      const shape = yield* failureOf("exchange.submit", () => ({
        status: 422,
        type: "text/plain",
        body: "Failed to deserialize the JSON body into the target type"
      }))
      assert.deepInclude(shape, { _tag: "ActionRejected", reason: "ShapeRefused" })
      const fault = yield* failureOf("exchange.submit", () => ({ status: 500, body: "null" }))
      assert.deepInclude(fault, { _tag: "OutcomeUnknown", nonce })
    }))
})
