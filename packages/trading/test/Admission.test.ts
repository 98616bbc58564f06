import { assert, describe, it } from "@effect/vitest"
import { actionCatalog, catalogDate, MultiSig, SignedEnvelope, TokenDelegate } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { testnet } from "@trigate/signing/VenueProfile"
import { leader, signLeader, signMultiSig } from "@trigate/testing/MultiSigText"
import { flipReason } from "@trigate/testing/Reason"
import * as Admission from "@trigate/trading/admission/Admission"
import { settings } from "@trigate/trading/unstable/TradingSettings"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

import vectors from "../../signing/test/fixtures/signing-vectors.json" with { type: "json" }
import * as admission from "./admission.ts"

const now = 1_705_234_567_890
const day = 86_400_000
const address = "0x0123456789abcdef0123456789abcdef01234567"
const signature = { r: "0x1", s: "0x2", v: 27 }
const delegate = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: address,
  wei: 100,
  isUndelegate: false,
  nonce: now
}
const bodyOf = (action: unknown, more: object = {}) => JSON.stringify({ action, nonce: now, signature, ...more })
const bigBlocks = bodyOf({ type: "evmUserModify", usingBigBlocks: true })
const multiSig = (inner: unknown) => ({
  type: "multiSig",
  signatureChainId: "0x66eee",
  signatures: [signature],
  payload: { multiSigUser: address, outerSigner: leader.address, action: inner }
})

const admit = (body: string | Uint8Array, options: admission.Options = {}) =>
  Effect.andThen(
    TestClock.setTime(now),
    admission.make(options).admit(typeof body === "string" ? Encoding.encode(body) : body)
  )
const refuse = (body: string | Uint8Array, options: admission.Options = {}) => flipReason(admit(body, options))
const faultsOf = (body: string | Uint8Array, options: admission.Options = {}) =>
  Effect.map(refuse(body, options), (error) =>
    error._tag === "InvalidRequest"
      ? error.errors.map(({ message, path }) => `${path.join(".")}: ${message}`)
      : assert.fail(error._tag))

describe("what is admitted", () => {
  it.effect("a body leaves as the very bytes that came, odd whitespace, key order and numbers included", () =>
    Effect.gen(function*() {
      const text = ` {\n\t"signature":{"v":27,"s":"0x2","r":"0x1"} ,"nonce" : ${now},  "vaultAddress":null,` +
        `"isFrontend":true,"action":{"memo":1.50e3,"isUndelegate":false,"wei":18446744073709551615,"nonce":${now},` +
        `"hyperliquidChain":"M\\u0061innet","validator":"${address}","signatureChainId":"0x66eee","type":"tokenDelegate"}}\r\n`
      const body = Encoding.encode(text)
      const admitted = yield* admit(body)
      assert.strictEqual(admitted.body, body)
      assert.strictEqual(
        Encoding.decode(admitted.body).pipe((option) => option._tag === "Some" && option.value),
        text
      )
      assert.strictEqual(admitted.actionType, "tokenDelegate")
      assert.strictEqual(admitted.nonce, now)
      assert.strictEqual(
        admitted.action?.type === "tokenDelegate" && "wei" in admitted.action && admitted.action.wei,
        18446744073709551615n
      )
      assert.deepStrictEqual(admitted.warnings, [])
    }))

  it.effect("every recorded body of every action passes, its bytes untouched", () =>
    Effect.gen(function*() {
      let count = 0
      for (const { isMainnet, nonce, requestBody } of vectors.vectors) {
        const body = Encoding.encode(requestBody)
        yield* TestClock.setTime(nonce)
        const admitted = yield* admission.make({
          ...(isMainnet ? {} : { profile: testnet }),
          relayActions: "all"
        }).admit(body)
        assert.strictEqual(admitted.body, body)
        count++
      }
      assert.isAbove(count, 50)
    }))

  it.effect("the documented form passes with the right form named", () =>
    Effect.gen(function*() {
      const { warnings } = yield* admit(bodyOf({ type: "evmUserModify", modifications: [] }))
      assert.deepStrictEqual(warnings, ["evmUserModify takes `usingBigBlocks`, not `modifications`"])
      const inner = yield* admit(bodyOf(multiSig({ type: "CSignerAction", payload: "x" })))
      assert.deepStrictEqual(inner.warnings, [
        "CSignerAction takes `unjailSelf: null` or `jailSelf: null`, not `payload`"
      ])
    }))

  it.effect("warns of another network, a passed expiry and an EVM flag under multi-sig", () =>
    Effect.gen(function*() {
      const action = multiSig({ type: "evmUserModify", usingBigBlocks: true, hyperliquidChain: "Testnet" })
      const { warnings } = yield* admit(signMultiSig(bodyOf(action, { expiresAfter: now })))
      assert.deepStrictEqual(warnings.map((warning) => warning.split(" ").slice(0, 3).join(" ")), [
        "evmUserModify is for",
        "The original key",
        "expiresAfter has passed:",
        "action.payload.action.hyperliquidChain is not"
      ])
      for (const warning of warnings) assert.match(warning, /^[\x20-\x7e]+$/u)
      const fresh = yield* admit(bodyOf({ type: "evmUserModify", usingBigBlocks: true }, { expiresAfter: now + 1 }))
      assert.deepStrictEqual(fresh.warnings, [])
      const { wei: _wei, ...amountless } = delegate
      const other = yield* admit(bodyOf({ ...amountless, amount: "1" }), { profile: testnet })
      assert.deepStrictEqual(other.warnings.slice(1), [
        "tokenDelegate is for another network: this gateway sends to Testnet"
      ])
    }))

  it.effect("both members beside the real one and the documented one: the real form counts", () =>
    Effect.gen(function*() {
      const admitted = yield* admit(bodyOf({ ...delegate, amount: "5" }), { strict: true })
      assert.deepStrictEqual(admitted.warnings, [])
      assert.strictEqual(admitted.signed.action["amount"], "5")
    }))
})

describe("an action of an unknown type inside a multi-sig", () => {
  for (const inner of [{ type: "fromTheFuture", b: 1, a: 2 }, { b: 1, type: "fromTheFuture", a: 2 }]) {
    it.effect(`is hashed with its members in the order of the one who signed: ${Object.keys(inner).join(", ")}`, () =>
      Effect.gen(function*() {
        const { signer } = yield* admit(signLeader(bodyOf(multiSig(inner))), { relayActions: "all" })
        assert.strictEqual(signer, leader.address.toLowerCase())
      }))
  }
})

describe("the chain field", () => {
  const { hyperliquidChain: _chain, ...nameless } = delegate

  it.effect("venueChain is respelled in the text, everything else stays", () =>
    Effect.gen(function*() {
      const text = `{ "action":{"venueChain" :"Mainnet",${JSON.stringify(nameless).slice(1)} , "nonce":${now},` +
        `"signature":{"r":"0x1","s":"0x2","v":27}}`
      const admitted = yield* admit(text)
      assert.strictEqual(
        new TextDecoder().decode(admitted.body),
        text.replace("\"venueChain\" :", "\"hyperliquidChain\" :")
      )
    }))

  it.effect("also in the wrapped action, and where the key is escaped", () =>
    Effect.gen(function*() {
      const inner = multiSig({ ...nameless, venueChain: "Mainnet" })
      const text = signMultiSig(bodyOf(inner).replace("\"venueChain\"", "\"venue\\u0043hain\""))
      const { body } = yield* admit(text)
      assert.strictEqual(
        new TextDecoder().decode(body),
        text.replace("\"venue\\u0043hain\"", "\"hyperliquidChain\"")
      )
    }))

  it.effect("a venueChain deeper in an action is not the chain field", () =>
    Effect.gen(function*() {
      const text = bodyOf({ type: "evmUserModify", modifications: [{ venueChain: "Mainnet" }] })
      assert.strictEqual(new TextDecoder().decode((yield* admit(text)).body), text)
    }))

  it.effect("both names are refused, in an action and in a wrapped one", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ ...delegate, venueChain: "Mainnet" })), [
        "action: Expected exactly one of hyperliquidChain and venueChain"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf(multiSig({ ...delegate, venueChain: "Mainnet" }))), [
        "action.payload.action.venueChain: Expected only one of hyperliquidChain and venueChain"
      ])
      assert.deepStrictEqual(
        yield* faultsOf(bodyOf({ type: "usdSend", hyperliquidChain: "Mainnet", venueChain: "Mainnet" }), {
          relayActions: "all"
        }),
        ["action.venueChain: Expected only one of hyperliquidChain and venueChain"]
      )
    }))
})

describe("what is refused", () => {
  it.effect("bytes that are no strict JSON", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* faultsOf(new Uint8Array([0x7b, 0xff, 0x7d])), [": Not valid UTF-8"])
      for (const text of ["", "{", "not json", "{'a':1}", `\uFEFF${bigBlocks}`, `${bigBlocks}x`]) {
        assert.deepStrictEqual(yield* faultsOf(text), [": Not a JSON document"])
      }
      assert.deepStrictEqual(
        yield* faultsOf(
          bigBlocks.replace("\"usingBigBlocks\":true", "\"usingBigBlocks\":true,\"usingBigBlock\\u0073\":false")
        ),
        ["action.usingBigBlocks: Duplicate key \"usingBigBlocks\""]
      )
      const deep = yield* faultsOf(
        bodyOf({ type: "x", a: "DEEP" }).replace("\"DEEP\"", "[".repeat(80) + "]".repeat(80))
      )
      assert.include(deep[0] ?? "", "Nested deeper than 64 levels")
    }))

  it.effect("a body that is no envelope, all faults at once", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* faultsOf("[]"), [": Expected an object"])
      assert.deepStrictEqual(yield* faultsOf("{}"), [
        "action: Missing key",
        "nonce: Missing key",
        "signature: Missing key"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ usingBigBlocks: true })), ["action.type: Missing key"])
      assert.deepStrictEqual(
        yield* faultsOf(
          bodyOf({ type: "evmUserModify", usingBigBlocks: 1 }, {
            nonce: "1",
            signature: { r: 1, v: 29 },
            vaultAddress: 5
          })
        ),
        [
          "action.usingBigBlocks: Expected true or false",
          "nonce: Expected milliseconds since the epoch as a JSON integer",
          "signature.r: Expected 0x hex of 1 to 64 digits",
          "signature.s: Missing key",
          "signature.v: Expected 27 or 28 or 0 or 1",
          "vaultAddress: Expected a 20-byte address in hex or null"
        ]
      )
    }))

  it.effect("an action, in the words of the one form that it means", () =>
    Effect.gen(function*() {
      const { wei: _wei, ...withoutWei } = delegate
      assert.deepStrictEqual(yield* faultsOf(bodyOf(withoutWei)), ["action.wei: Missing key"])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ ...delegate, wei: "100" })), [
        "action.wei: Expected a JSON integer"
      ])
      assert.deepStrictEqual(
        yield* faultsOf(bodyOf({ ...delegate, hyperliquidChain: "Devnet", signatureChainId: 1 })),
        [
          "action.signatureChainId: Expected a chain id in 0x hex",
          "action.hyperliquidChain: Expected \"Mainnet\" or \"Testnet\""
        ]
      )
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ ...delegate, wei: -1 })), [
        "action.wei: Expected a value between 0n and 18446744073709551615n"
      ])
      assert.deepStrictEqual(
        yield* faultsOf(bodyOf(delegate).replace("\"wei\":100", "\"wei\":18446744073709551616")),
        ["action.wei: Expected a value between 0n and 18446744073709551615n"]
      )
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ ...withoutWei, amount: 5, validator: "0x1" })), [
        "action.validator: Expected a 20-byte address in 0x hex",
        "action.amount: Expected a string"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ type: "CSignerAction" })), [
        "action: Expected a member `unjailSelf` or `jailSelf`"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ type: "CSignerAction", jailSelf: null, unjailSelf: null })), [
        "action: Expected only one of `unjailSelf` or `jailSelf`"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ type: "CSignerAction", jailSelf: true })), [
        "action.jailSelf: Expected null"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ type: "evmUserModify", modifications: "x" })), [
        "action.modifications: Expected an array"
      ])
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ ...multiSig({ type: "noop" }), signatures: [] })), [
        "action.signatures: Expected a value with a length between 1 and 10"
      ])
    }))

  it.effect("action types outside the catalog, unless the options name them", () =>
    Effect.gen(function*() {
      const unsupported = Effect.fnUntraced(function*(action: object, options: Admission.Options = {}) {
        const error = yield* refuse(bodyOf(action), options)
        return error._tag === "UnsupportedAction" ? error : assert.fail(error._tag)
      })
      const order = { type: "order", orders: [], grouping: "na" }
      const future = { type: "fromTheFuture" }

      const known = yield* unsupported(future)
      assert.strictEqual(known.actionType, "fromTheFuture")
      assert.deepStrictEqual(known.supported, Object.keys(actionCatalog))
      assert.strictEqual(
        known.detail,
        "This gateway does not relay the unknown action type \"fromTheFuture\": TRIGATE_RELAY_ACTIONS is unset, and the " +
          `catalog is of ${catalogDate}; \`*\` relays unknown types too`
      )
      assert.isUndefined((yield* admit(bodyOf(order))).action)
      assert.strictEqual((yield* admit(bodyOf(future), { relayActions: "all" })).actionType, "fromTheFuture")
      assert.strictEqual((yield* unsupported({ type: "__proto__" })).actionType, "__proto__")

      // a list replaces the catalog
      assert.strictEqual(
        (yield* admit(bodyOf(future), { relayActions: ["fromTheFuture"] })).actionType,
        "fromTheFuture"
      )
      const other = yield* unsupported({ type: "x".repeat(500) }, { relayActions: ["order", "order"] })
      assert.deepStrictEqual([other.supported, other.actionType.length], [["order"], 64])
      const unlisted = yield* unsupported(delegate, { relayActions: ["order"] })
      assert.strictEqual(
        unlisted.detail,
        "This gateway does not relay the action type \"tokenDelegate\": TRIGATE_RELAY_ACTIONS lists the types that are relayed"
      )
      const none = yield* unsupported(order, { relayActions: "none" })
      assert.deepStrictEqual(none.supported, [])
      assert.include(none.detail, "TRIGATE_RELAY_ACTIONS is `none`")
    }))

  it.effect("the action inside a multi-sig by the same list", () =>
    Effect.gen(function*() {
      const body = signMultiSig(bodyOf(multiSig({ type: "noop" })))
      assert.strictEqual((yield* admit(body)).actionType, "multiSig")
      assert.strictEqual((yield* admit(body, { relayActions: ["multiSig", "noop"] })).actionType, "multiSig")
      for (
        const [relayActions, actionType] of [
          [["multiSig"], "noop"],
          [["noop"], "multiSig"]
        ] as const
      ) {
        const error = yield* refuse(body, { relayActions })
        assert.deepStrictEqual(error._tag === "UnsupportedAction" ? error.actionType : error._tag, actionType)
      }
    }))

  it.effect("documented forms in strict mode, naming the right one", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* faultsOf(bodyOf({ type: "evmUserModify", modifications: [] }), { strict: true }), [
        "action.modifications: evmUserModify takes `usingBigBlocks`, not `modifications`"
      ])
      assert.deepStrictEqual(
        yield* faultsOf(bodyOf(multiSig({ type: "tokenDelegate", amount: "1" })), { strict: true }),
        ["action.payload.action.amount: tokenDelegate takes an integer `wei` (HYPE x 10^8), not `amount`"]
      )
      assert.strictEqual(
        (yield* admit(signMultiSig(bodyOf(multiSig({ type: "order", amount: "1" }))), { strict: true })).nonce,
        now
      )
      assert.strictEqual((yield* admit(bodyOf(delegate), { strict: true })).nonce, now)
    }))

  it.effect("a nonce inside the action that is not the body's", () =>
    Effect.gen(function*() {
      const error = yield* refuse(bodyOf({ ...delegate, nonce: now + 1 }))
      assert.strictEqual(error._tag, "NonceMismatch")
      if (error._tag === "NonceMismatch") assert.deepStrictEqual([error.nonce, error.actionNonce], [now, now + 1])
    }))

  it.effect("a time inside a transfer that is not the body's nonce", () =>
    Effect.gen(function*() {
      const send = {
        type: "usdSend",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Mainnet",
        destination: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
        amount: "1"
      }
      const options = { relayActions: ["usdSend"] }
      const error = yield* refuse(bodyOf({ ...send, time: now - 1 }), options)
      assert.strictEqual(error._tag, "NonceMismatch")
      if (error._tag === "NonceMismatch") assert.deepStrictEqual([error.nonce, error.actionNonce], [now, now - 1])
      assert.strictEqual((yield* admit(bodyOf({ ...send, time: now }), options)).nonce, now)
    }))

  it.effect("a nonce at either end of the window or beyond it", () =>
    Effect.gen(function*() {
      const at = (nonce: number) => bodyOf({ type: "evmUserModify", usingBigBlocks: true }, { nonce })
      for (const nonce of [now - 2 * day + 1, now, now + day - 1]) {
        assert.strictEqual((yield* admit(at(nonce))).nonce, nonce)
      }
      for (const nonce of [now - 2 * day, now + day, 0, Number.MAX_SAFE_INTEGER]) {
        const error = yield* refuse(at(nonce))
        assert.strictEqual(error._tag, "NonceOutOfWindow")
        if (error._tag === "NonceOutOfWindow") {
          assert.deepStrictEqual([error.nonce, error.now, error.earliest, error.latest], [
            nonce,
            now,
            now - 2 * day,
            now + day
          ])
        }
      }
      const narrow = { nonceWindow: { past: "1 second", future: "2 seconds" } } as const
      assert.strictEqual((yield* refuse(at(now - 1000), narrow))._tag, "NonceOutOfWindow")
      assert.strictEqual((yield* admit(at(now + 1999), narrow)).nonce, now + 1999)
      const seconds = yield* refuse(at(Math.floor(now / 1000)))
      assert.strictEqual(seconds._tag, "NonceOutOfWindow")
    }))

  it.effect("shortly after the epoch as well", () =>
    Effect.gen(function*() {
      const error = yield* flipReason(admission.make().admit(Encoding.encode(bigBlocks)))
      assert.strictEqual(error._tag, "NonceOutOfWindow")
      if (error._tag === "NonceOutOfWindow") assert.deepStrictEqual([error.earliest, error.latest], [0, day])
    }))
})

describe("whatever comes", () => {
  const Message = Schema.Struct({
    action: Schema.Union([MultiSig, TokenDelegate, Schema.Struct({ type: Schema.String }), Schema.Null]),
    more: Schema.Record(Schema.String, Schema.Unknown)
  })

  it.effect.prop(
    "either the same bytes go out or a typed refusal comes back",
    [Message],
    ([{ action, more }]) =>
      Effect.gen(function*() {
        const text = Encoding.stringify({ nonce: now, signature, ...more, action })
        const body = Encoding.encode(text)
        const result = yield* Effect.result(admit(body, { relayActions: "all" }))
        if (result._tag === "Success" && !text.includes("venueChain")) assert.strictEqual(result.success.body, body)
        if (result._tag === "Failure") {
          assert.include(
            ["InvalidRequest", "InvalidSignature", "NonceMismatch", "NonceOutOfWindow"],
            unwrapReason(result.failure)._tag
          )
        }
      })
  )

  it.effect.prop(
    "a generated envelope of a pass-through type is refused for its nonce or its signature only",
    [SignedEnvelope],
    ([signed]) =>
      Effect.gen(function*() {
        const text = Encoding.stringify(Schema.encodeSync(SignedEnvelope)(signed))
        const result = yield* Effect.result(
          Effect.andThen(
            TestClock.setTime(signed.nonce),
            admission.make({ relayActions: "all" }).admit(Encoding.encode(text))
          )
        )
        if (result._tag === "Failure") {
          assert.include(["InvalidRequest", "InvalidSignature", "NonceMismatch"], unwrapReason(result.failure)._tag)
        }
      })
  )
})

describe("the configuration", () => {
  const configured = Layer.unwrap(
    Effect.map(
      Config.all([settings.network, Admission.config]),
      ([network, options]) => Layer.provide(Admission.layer(options), VenueProfile.layer(network))
    )
  )
  const admitWith = (environment: { readonly [name: string]: string }, body: string) =>
    Effect.andThen(
      TestClock.setTime(now),
      Effect.flatMap(Admission.Admission, ({ admit }) => admit(Encoding.encode(body))).pipe(
        Effect.provide(
          configured.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(environment))))
        )
      )
    )

  it.effect("reads the network, the strictness and the relayed types", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* admitWith({}, bodyOf(delegate))).warnings, [])
      const other = yield* flipReason(admitWith({ TRIGATE_NETWORK: "testnet" }, bodyOf(delegate)))
      assert.strictEqual(other._tag, "InvalidSignature")
      const documented = bodyOf({ type: "evmUserModify", modifications: [] })
      assert.strictEqual((yield* flipReason(admitWith({ TRIGATE_STRICT: "on" }, documented)))._tag, "InvalidRequest")
      assert.strictEqual((yield* admitWith({ TRIGATE_STRICT: "off" }, documented)).warnings.length, 1)
      const order = bodyOf({ type: "order" })
      for (const text of ["none", "cancel"]) {
        const refused = yield* flipReason(admitWith({ TRIGATE_RELAY_ACTIONS: text }, order))
        assert.strictEqual(refused._tag, "UnsupportedAction")
      }
      for (const environment of [{}, { TRIGATE_RELAY_ACTIONS: "cancel, order" }, { TRIGATE_RELAY_ACTIONS: "*" }]) {
        assert.strictEqual((yield* admitWith(environment, order)).actionType, "order")
      }
    }))

  it.effect("refuses a setting that it does not know", () =>
    Effect.gen(function*() {
      for (const environment of [{ TRIGATE_NETWORK: "devnet" }, { TRIGATE_STRICT: "yes" }]) {
        const error = yield* flipReason(admitWith(environment, bigBlocks))
        assert.strictEqual(error._tag, "ConfigError")
      }
    }))
})
