/** The order of members against the schemas of `@nktkas/hyperliquid`, and signers against its signatures. */
import { assert, describe, it } from "@effect/vitest"
import * as peer from "@nktkas/hyperliquid/api/exchange"
import { signL1Action, signMultiSigL1, signMultiSigUserSigned } from "@nktkas/hyperliquid/signing"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { privateKeyToAccount } from "viem/accounts"

interface Named {
  readonly [name: string]: Named
}

const part = (schema: unknown, key: string): unknown => Predicate.hasProperty(schema, key) ? schema[key] : undefined

const merged = (parts: unknown): Named =>
  Object.fromEntries(
    (Array.isArray(parts) ? parts : []).flatMap((each: unknown) => Object.entries(named(each)))
  )

/** A member that may be left out; one with a default is printed when it was left out. */
const isOptional = (schema: unknown): boolean =>
  part(schema, "type") === "optional" && part(schema, "default") === undefined

/** The members of a schema of the peer, those of all its forms together. */
const named = (schema: unknown): Named => {
  const entries = part(schema, "entries")
  if (Predicate.isObject(entries)) {
    return Object.fromEntries(
      Object.entries(entries).map(([name, entry]) => [isOptional(entry) ? `${name}?` : name, named(entry)])
    )
  }
  for (const key of ["wrapped", "item"]) {
    const inner = part(schema, key)
    if (inner !== undefined) return named(inner)
  }
  return merged(part(schema, "options") ?? part(schema, "items"))
}

const ours = (order: CanonicalAction.ActionOrder): Named =>
  Object.fromEntries(
    [...order].map(([name, { presence, shape }]) => [presence === "optional" ? `${name}?` : name, within(shape)])
  )

/** The members of an object, also of one in a list. */
const within = (shape: CanonicalAction.Shape): Named =>
  shape._tag === "Members"
    ? ours(shape.order)
    : shape._tag === "List"
    ? within(shape.item)
    : shape._tag === "Tuple"
    ? Object.fromEntries(shape.items.flatMap((item) => Object.entries(within(item))))
    : {}

const literal = (schema: unknown): unknown =>
  part(part(part(schema, "entries"), "type"), "literal") ?? literalOfForm(part(schema, "options"))

const literalOfForm = (forms: unknown): unknown => Array.isArray(forms) ? literal(forms[0]) : undefined

/** The peer's L1 actions by type. */
const schemas = Object.entries(peer).flatMap(([name, schema]): ReadonlyArray<readonly [string, unknown]> => {
  const action = part(part(schema, "entries"), "action")
  const type = literal(action)
  return !name.endsWith("Request") || !Predicate.isString(type) || `${name.slice(0, -7)}Types` in peer
    ? []
    : [[type, action]]
})

const wallet = privateKeyToAccount(`0x${"11".repeat(32)}`)
const cosigner = privateKeyToAccount(`0x${"12".repeat(32)}`)
const multiSigUser = `0x${"ab".repeat(20)}` as const
const nonce = 1_705_234_567_890

const limit = { a: 1, b: true, p: "1100", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } }
const trigger = {
  ...limit,
  t: { trigger: { isMarket: true, triggerPx: "103", tpsl: "sl" } },
  c: "0x00000000000000000000000000000001"
}

/** In the order of the venue. */
const l1: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  { type: "order", orders: [limit, trigger], grouping: { p: 5 }, builder: { b: multiSigUser, f: 10 } },
  { type: "order", orders: [trigger], grouping: "na" },
  { type: "batchModify", modifies: [{ oid: 5, order: limit }, { oid: 6, order: trigger }] },
  { type: "cancel", cancels: [{ a: 1, o: 77 }, { a: 2, o: 78 }] },
  { type: "updateLeverage", asset: 1, isCross: true, leverage: 20 },
  { type: "vaultTransfer", vaultAddress: multiSigUser, isDeposit: true, usd: 5 },
  {
    type: "perpDeploy",
    registerAsset2: {
      maxGas: null,
      assetRequest: { coin: "x:A", szDecimals: 2, oraclePx: "1.0", marginTableId: 10, marginMode: "normal" },
      dex: "x",
      schema: { fullName: "X", collateralToken: 0, oracleUpdater: null }
    }
  },
  { type: "perpDeploy", setOracle: { dex: "x", oraclePxs: [["a", "1"]], markPxs: [[["a", "1"]]], externalPerpPxs: [] } }
]

const withdrawal = {
  type: "withdraw3",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  destination: multiSigUser,
  amount: "1",
  time: nonce
} as const

/** The members of every object in an order that the seed decides. */
const shuffled = (value: unknown, seed: number): unknown => {
  if (Array.isArray(value)) return value.map((item: unknown) => shuffled(item, seed))
  if (!Predicate.isReadonlyObject(value)) return value
  let state = seed
  const keyed = Object.entries(value).map(([name, item]) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return { at: state, name, item: shuffled(item, state) }
  })
  return Object.fromEntries(keyed.toSorted((a, b) => a.at - b.at).map(({ item, name }) => [name, item]))
}

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff }))

const recover = (action: unknown, signature: CanonicalAction.SignedRequest["signature"]) =>
  CanonicalAction.recover(mainnet, { action, nonce, signature })

/**
 * The Rust library still has the transfer that `usdClassTransfer` has replaced, only the Python one freezes, and the peer lacks what
 * the venue has added since.
 */
const elsewhere = new Set([
  "classTransfer",
  "freezeUser",
  "enableFreezePrivilege",
  "revokeFreezePrivilege",
  "enableAlignedQuoteToken",
  "setTokenAnnotation",
  "setDeployerLabel",
  "setDeployerFees",
  "setFundingClamps",
  "star",
  "hip3Star",
  "deployerFeeScale",
  "registerAndAssociateNamedOutcomeFromTemplate"
])

const shared = (members: Named): Named =>
  Object.fromEntries(
    Object.entries(members).filter(([name]) => !elsewhere.has(name)).map(([name, inner]) => [name, shared(inner)])
  )

/** Types that the peer lacks, and one of which it has another form. */
const newer: ReadonlySet<string> = new Set(["activateOutcomeDeployer", "outcomeDeploy", "trailingStop"])

describe("ActionOrder.l1", () => {
  it("is the peer's, for every L1 action that it has", () => {
    assert.strictEqual(schemas.length, 42)
    const known = schemas.filter(([type]) => !newer.has(type))
    for (const [type, action] of known) {
      const order = CanonicalAction.l1(type) ?? assert.fail(type)
      assert.strictEqual(JSON.stringify(shared(ours(order))), JSON.stringify(named(action)), type)
    }
    const types = CanonicalAction.l1Types.filter((type) => !newer.has(type))
    assert.deepStrictEqual(types.toSorted(), known.map(([type]) => type).toSorted())
  })
})

describe("ActionOrder.arrange", () => {
  const order = CanonicalAction.l1("order") ?? assert.fail("order")
  const [action] = l1

  it("makes nothing of an action that is in order", () => {
    assert(action !== undefined)
    assert.strictEqual(CanonicalAction.arrangeMembers(order, action), action)
  })

  it("leaves out optional members that are null, and keeps others", () => {
    const sent = { type: "order", orders: [{ ...limit, c: null }], grouping: null, builder: null }
    assert.strictEqual(
      JSON.stringify(CanonicalAction.arrangeMembers(order, sent)),
      JSON.stringify({ type: "order", orders: [limit], grouping: null })
    )
  })

  it("leaves an action as it is where a member is not named, at any level", () => {
    for (
      const sent of [
        { grouping: "na", type: "order", memo: 1 },
        { grouping: "na", orders: [limit, { b: true, a: 1, z: 1 }], type: "order" },
        { grouping: "na", orders: [{ ...limit, t: { limit: { tif: { a: 1 } } } }], type: "order" },
        { grouping: "na", type: "order", ["__proto__"]: 1 }
      ]
    ) {
      assert.strictEqual(CanonicalAction.arrangeMembers(order, sent), sent)
    }
  })
})

describe("any order of the members", () => {
  for (const [index, action] of l1.entries()) {
    it.effect.prop(
      `has the same signer: ${String(action["type"])} ${index}`,
      { seed: Seed },
      ({ seed }) =>
        Effect.gen(function*() {
          const signature = yield* Effect.promise(() => signL1Action({ wallet, action, nonce }))
          const { signer } = yield* recover(shuffled(action, seed), signature)
          assert.strictEqual(signer, wallet.address.toLowerCase())
        }),
      { arbitrary: { runs: 20 } }
    )
  }

  const signers = [wallet, cosigner] as const
  const chain = { signers, multiSigUser, signatureChainId: "0x66eee", nonce } as const
  const wrapped: ReadonlyArray<readonly [what: string, sign: () => ReturnType<typeof signMultiSigL1>]> = [
    ["an L1 action", () => signMultiSigL1({ ...chain, action: { ...l1[0] } })],
    ["a user-signed action", () => signMultiSigUserSigned({ ...chain, action: withdrawal, types: peer.Withdraw3Types })]
  ]
  for (const [what, sign] of wrapped) {
    it.effect.prop(
      `has the same signers in a wrapper around ${what}`,
      { seed: Seed },
      ({ seed }) =>
        Effect.gen(function*() {
          const { action, signature } = yield* Effect.promise(sign)
          const found = yield* recover(shuffled(action, seed), signature)
          assert(found.scheme === "multiSig")
          assert.deepStrictEqual(
            [found.signer, ...found.inner.map(({ signer }) => signer)],
            [wallet, wallet, cosigner].map(({ address }) => address.toLowerCase())
          )
        }),
      { arbitrary: { runs: 20 } }
    )
  }

  it.effect("counts for a type that is not known", () =>
    Effect.gen(function*() {
      const action = { type: "fromTheFuture", b: 1, a: 2 }
      const signature = yield* Effect.promise(() => signL1Action({ wallet, action, nonce }))
      assert.strictEqual((yield* recover(action, signature)).signer, wallet.address.toLowerCase())
      const { a, b, type } = action
      assert.notStrictEqual((yield* recover({ type, a, b }, signature)).signer, wallet.address.toLowerCase())
    }))
})
