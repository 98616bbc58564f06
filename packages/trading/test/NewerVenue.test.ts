/** Actions that the venue has added since the catalog's date, signed by `@nktkas/hyperliquid`: they are not mistaken, and not refused. */
import { assert, describe, it } from "@effect/vitest"
import { signL1Action, signMultiSigL1 } from "@nktkas/hyperliquid/signing"
import { catalogDate } from "@trigate/domain/actions/Action"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { mainnet } from "@trigate/signing/VenueProfile"
import { flipReason } from "@trigate/testing/Reason"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as TestClock from "effect/testing/TestClock"
import { privateKeyToAccount } from "viem/accounts"
import * as admission from "./admission.ts"

const nonce = 1_795_230_000_123
const trader = keys.trader.address
const wallet = privateKeyToAccount(keys.trader.privateKey)
const options = { relayActions: "all" } as const

type Action = Readonly<Record<string, unknown>>

/** The members of every object sorted by name, as some JSON libraries write them. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  return Predicate.isReadonlyObject(value)
    ? Object.fromEntries(
      Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([name, item]) => [name, sorted(item)])
    )
    : value
}

const limit = { a: 1, b: true, p: "1100.5", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } }
const order = { type: "order", orders: [limit], grouping: "na" }

/** The action that is hashed, the action that is sent, and what is not known of it. */
const cases: ReadonlyArray<readonly [what: string, hashed: Action, sent: unknown, unknown: string]> = [
  ["a member at the end", { ...order, z: 1 }, { ...order, z: 1 }, "action.z"],
  [
    "a member of an order, sent in sorted order",
    { ...order, orders: [{ ...limit, d: 5 }] },
    sorted({
      ...order,
      orders: [{ ...limit, d: 5 }]
    }),
    "action.orders.0.d"
  ],
  [
    "a member before others",
    { type: "order", orders: [limit], h: [1], grouping: "na" },
    sorted({ ...order, h: [1] }),
    "action.h"
  ],
  ["a member that is sent and not hashed", order, { ...order, clientTag: "x" }, "action.clientTag"],
  ["a member of an action whose members are decoded", { type: "evmUserModify", usingBigBlocks: true, gas: 1 }, {
    type: "evmUserModify",
    usingBigBlocks: true,
    gas: 1
  }, "action.gas"],
  [
    "a variant",
    { type: "perpDeploy", setTicks: [["x:A", 1]] },
    sorted({
      type: "perpDeploy",
      setTicks: [["x:A", 1]]
    }),
    "action.setTicks"
  ],
  ["a further version of a variant", { type: "perpDeploy", setOracle2: { dex: "x" } }, {
    type: "perpDeploy",
    setOracle2: { dex: "x" }
  }, "action.setOracle2"],
  ["a variant inside", { type: "outcomeDeploy", venue: "ab", operation: { voidOutcome: 7 } }, {
    operation: { voidOutcome: 7 },
    venue: "ab",
    type: "outcomeDeploy"
  }, "action.operation.voidOutcome"],
  [
    "an order type",
    { ...order, orders: [{ ...limit, t: { peg: { offset: "1" } } }] },
    sorted({ ...order, orders: [{ ...limit, t: { peg: { offset: "1" } } }] }),
    "action.orders.0.t.peg"
  ],
  ["a word", { ...order, grouping: "basket" }, { ...order, grouping: "basket" }, "the word at action.grouping"],
  ["a type", { type: "sendTime", b: 2, a: 1 }, { type: "sendTime", b: 2, a: 1 }, `the action type "sendTime"`],
  [
    "a type, not sent first",
    { type: "sendTime", b: 2, a: 1 },
    { b: 2, a: 1, type: "sendTime" },
    `the action type "sendTime"`
  ],
  [
    "a further version of a type",
    { type: "withdraw9", b: 2 },
    { type: "withdraw9", b: 2 },
    `the action type "withdraw9"`
  ]
]

const inspect = (body: object) => Inspector.make(mainnet, options).inspect(Utf8.encode(JSON.stringify(body)), trader)

const admit = (body: object, more: admission.Options = {}, expected?: `0x${string}`) =>
  Effect.andThen(
    TestClock.setTime(nonce),
    admission.make({ ...options, ...more }).admit(Utf8.encode(JSON.stringify(body)), expected)
  )

const note = (unknown: string): string => `${unknown} is not known to this version (catalog of ${catalogDate})`

describe("what the catalog does not know", () => {
  for (const [what, action, sent, unknown] of cases) {
    it.effect(`fits, and is relayed for its signer: ${what}`, () =>
      Effect.gen(function*() {
        const signature = yield* Effect.promise(() => signL1Action({ wallet, action: { ...action }, nonce }))
        const body = { action: sent, nonce, signature }
        const { corrected, diagnosis, outer, warnings } = yield* inspect(body)
        assert.deepStrictEqual(
          [diagnosis.verdict, diagnosis.mistakes, outer?.signer, corrected],
          ["fits", [], trader, undefined]
        )
        assert.strictEqual(diagnosis.detail, `The signature is by ${trader}; ${note(unknown)}`)
        assert.include(warnings, note(unknown))
        for (const admitted of [yield* admit(body, {}, trader), yield* admit(body, { signers: [trader] })]) {
          assert.strictEqual(admitted.signer, trader)
          // words change no signature
          assert.deepStrictEqual(admitted.warnings, unknown.startsWith("the word") ? [] : [note(unknown)])
        }
        const stranger = yield* flipReason(admit(body, {}, keys.stranger.address))
        assert.strictEqual(stranger._tag, "InvalidSignature")
      }))
  }

  it.effect("fits inside a multi-sig, whose leader confirms the form", () =>
    Effect.gen(function*() {
      const { action, signature } = yield* Effect.promise(() =>
        signMultiSigL1({
          signers: [wallet, privateKeyToAccount(keys.cosigner.privateKey)],
          multiSigUser: keys.multiSigUser.address,
          signatureChainId: "0x66eee",
          action: { type: "order", orders: [limit], h: 1, grouping: "na" },
          nonce
        })
      )
      const body = { action: sorted(action), nonce, signature }
      const { diagnosis, inner } = yield* inspect(body)
      assert.deepStrictEqual([diagnosis.verdict, diagnosis.mistakes], ["fits", []])
      assert.deepStrictEqual(inner?.map(({ signer }) => signer), [trader, keys.cosigner.address])
      assert.strictEqual((yield* admit(body)).signer, trader)
    }))

  it.effect("is not confused with older versions, other spellings and words of other venues", () =>
    Effect.gen(function*() {
      const named = Effect.fnUntraced(function*(action: Action) {
        const signature = yield* Effect.promise(() => signL1Action({ wallet, action: { ...action }, nonce }))
        const { diagnosis } = yield* inspect({ action, nonce, signature })
        return diagnosis.mistakes.map(({ mistake, path }) => `${mistake} ${path.join(".")}`)
      })
      assert.deepStrictEqual(yield* named({ ...order, grouping: "none" }), ["unknownWord action.grouping"])
      assert.deepStrictEqual(yield* named({ ...order, orders: [{ ...limit, t: { limit: { tif: "FOK" } } }] }), [
        "unknownWord action.orders.0.t.limit.tif"
      ])
      assert.deepStrictEqual(yield* named({ type: "perpDeploy", set_oracle: { dex: "x" } }), [
        "misplacedMember action.set_oracle",
        "missingMember action.setOracle.oraclePxs",
        "missingMember action.setOracle.markPxs",
        "missingMember action.setOracle.externalPerpPxs"
      ])
      assert.deepStrictEqual(yield* named({ type: "orders", orders: [limit], grouping: "na" }), [
        "unknownType action.type"
      ])
    }))
})
