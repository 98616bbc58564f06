/** The venue plays each member of an action, or refuses the action: nothing that a client sends is ignored. */
import { assert, describe, it } from "@effect/vitest"
import { actionCatalog } from "@trigate/domain/actions/Action"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { playedTypes } from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as AST from "effect/SchemaAST"
import { privateKeyToAccount } from "viem/accounts"
import {
  act,
  ask,
  askAt,
  btc,
  eth,
  hype,
  hypeSpot,
  listOf,
  markOf,
  oidOf,
  orderOf,
  place,
  sol,
  triggerAt
} from "./trader.ts"
import * as Signed from "./venue.ts"
import { atStart, start } from "./venue.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const cloid = `0x${"c".repeat(32)}`
/** The actions that the test's account cannot execute. */
const unaccepted = new Set([
  "topUpIsolatedOnlyMargin",
  "claimRewards",
  "authorizeAqav2Role",
  "activateOutcomeDeployer",
  "outcomeDeploy",
  "perpDeploy",
  "finalizeEvmContract",
  "hip3LiquidatorTransfer"
])
const shape = "Failed to deserialize the JSON body into the target type"

/** State as JSON: maps and sets as lists, big integers as text. */
const printable = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? String(value) : value instanceof Map || value instanceof Set ? [...value] : value

/** All that an action can change. */
const observe = Effect.gen(function*() {
  const { trading, venue } = yield* SandboxState
  return JSON.stringify([yield* trading.snapshot, yield* Ref.get(venue.state)], printable)
})

/** Accounts, orders and vaults, and for each played action one that is accepted. */
const prepare = Effect.gen(function*() {
  const { trading } = yield* SandboxState
  yield* trading.depositUsd(other, "5000")
  const [below, low] = [yield* markOf("ETH", -0.1), yield* markOf("ETH", -0.2)]
  const oid = oidOf(yield* place(user, eth, "buy", "0.1", below))
  yield* trading.setPosition(user, "SOL", "1")
  const stop = { r: true, t: triggerAt("sl", yield* markOf("SOL", -0.2)), c: cloid }
  const trigger = oidOf(yield* place(user, sol, "sell", "1", yield* markOf("SOL", -0.3), stop))
  const subAccountUser = yield* act(user, "createSubAccount", { name: "one" })
  const created = { name: "v", description: "", initialUsd: 300_000_000, nonce: 1 }
  const vaultAddress = yield* act(user, "createVault", created)
  yield* act(user, "updateLeverage", { asset: hype, isCross: false, leverage: 2 })
  yield* act(user, "order", {
    orders: [orderOf(hype, "buy", "2", yield* markOf("HYPE", 0.01), { tif: "Ioc" })],
    grouping: "na"
  })
  yield* trading.setVolume(other, "10000")
  yield* act(other, "registerReferrer", { code: "REF" })
  yield* act(user, "approveBuilderFee", { ...chain, builder: other, maxFeeRate: "0.1%", nonce: 1 })
  yield* act(other, "linkStakingUser", { ...chain, user, isFinalize: false, nonce: 1 })
  const twap = { a: eth, b: true, s: "2", r: false, m: 10, t: false }
  const twapId = JsonParts.at(yield* act(user, "twapOrder", { twap }), "status", "running", "twapId")
  const now = yield* trading.now
  const transfer = { destination: other, token: "USDC", amount: "1", time: 1 }
  const sent = { sourceDex: "", destinationDex: "xyz", token: "USDC", amount: "1", nonce: 1 }
  const validator = keys.validator.address
  yield* trading.depositSpot(user, 150, "3000")
  const spec = { name: "NEW", szDecimals: 2, weiDecimals: 8 }
  const token = yield* act(user, "spotDeploy", { registerToken2: { spec, maxGas: 300_000_000_000 } })
  yield* act(user, "spotDeploy", { userGenesis: { token, userAndWei: [[other, "7"]], existingTokenAndWei: [] } })
  const profile = {
    node_ip: { Ip: "1.2.3.4" },
    name: "mine",
    description: "",
    delegations_disabled: false,
    commission_bps: 5,
    signer: user
  }
  yield* act(user, "CValidatorAction", { register: { profile, unjailed: true, initial_wei: 1 } })
  const hypePx = yield* markOf("@107", 0.01)
  const resting = orderOf(eth, "buy", "0.1", low)
  const samples: { readonly [type: string]: ReadonlyArray<object> } = {
    order: [
      { orders: [resting], grouping: "na" },
      { orders: [orderOf(hypeSpot, "buy", "1", hypePx, { tif: "Ioc" })], grouping: { p: 10_000 } }
    ],
    cancel: [{ cancels: [{ a: sol, o: trigger }] }],
    cancelByCloid: [{ cancels: [{ asset: sol, cloid }] }],
    modify: [{ oid, order: resting }],
    batchModify: [{ modifies: [{ oid, order: resting }] }],
    scheduleCancel: [{}],
    twapOrder: [{ twap }, { twap, details: { t: { p: low, a: false }, s: null } }],
    twapCancel: [{ a: eth, t: twapId }],
    trailingStop: [{
      asset: sol,
      isBuy: false,
      sz: "1",
      reduceOnly: true,
      retracement: { pct: "1.5000%" },
      activationPx: null
    }],
    noop: [{}],
    updateLeverage: [{ asset: btc, isCross: true, leverage: 3 }],
    updateIsolatedMargin: [{ asset: hype, isBuy: true, ntli: 1_000_000 }],
    topUpIsolatedOnlyMargin: [{ asset: btc, leverage: "2" }],
    usdSend: [{ ...chain, destination: other, amount: "1", time: 1 }],
    spotSend: [{ ...chain, ...transfer }],
    sendAsset: [{ ...chain, ...sent, destination: user, fromSubAccount: "" }],
    agentSendAsset: [{ ...sent, destination: user, fromSubAccount: "" }],
    withdraw3: [{ ...chain, destination: other, amount: "10", time: 1 }],
    usdClassTransfer: [{ ...chain, amount: "1", toPerp: false, nonce: 1 }],
    cDeposit: [{ ...chain, wei: 100, nonce: 1 }],
    cWithdraw: [{ ...chain, wei: 100, nonce: 1 }],
    tokenDelegate: [{ ...chain, validator, wei: 100, isUndelegate: false, nonce: 1 }],
    approveAgent: [{ ...chain, agentAddress: `0x${"a".repeat(40)}`, nonce: 1 }],
    approveBuilderFee: [{ ...chain, maxFeeRate: "0.05%", builder: other, nonce: 1 }],
    convertToMultiSigUser: [{ ...chain, signers: "null", nonce: 1 }],
    linkStakingUser: [{ ...chain, user: other, isFinalize: true, nonce: 1 }],
    stakingLinkDisableTradingUser: [{ ...chain, tradingUser: other, nonce: 1 }],
    userDexAbstraction: [{ ...chain, user, enabled: true, nonce: 1 }],
    userPortfolioMargin: [{ ...chain, user, enabled: true, nonce: 1 }],
    userSetAbstraction: [{ ...chain, user, abstraction: "unifiedAccount", nonce: 1 }],
    agentEnableDexAbstraction: [{}],
    agentSetAbstraction: [{ abstraction: "u" }],
    createSubAccount: [{ name: "two" }],
    subAccountModify: [{ subAccountUser, name: "new" }],
    subAccountTransfer: [{ subAccountUser, isDeposit: true, usd: 1_000_000 }],
    subAccountSpotTransfer: [{ subAccountUser, isDeposit: true, token: "USDC", amount: "1" }],
    createVault: [created],
    vaultModify: [
      { vaultAddress, allowDeposits: null, alwaysCloseOnWithdraw: null },
      { vaultAddress, allowDeposits: true, alwaysCloseOnWithdraw: true }
    ],
    vaultTransfer: [{ vaultAddress, isDeposit: true, usd: 100_000_000 }],
    vaultDistribute: [{ vaultAddress, usd: 1_000_000 }],
    registerReferrer: [{ code: "MINE" }],
    setReferrer: [{ code: "REF" }],
    claimRewards: [{}],
    setDisplayName: [{ displayName: "me" }],
    reserveRequestWeight: [{ weight: 10 }],
    spotUser: [{ toggleSpotDusting: { optOut: true } }, { classTransfer: { usdc: 1_000_000, toPerp: true } }],
    CSignerAction: [{ jailSelf: null }, { unjailSelf: null }],
    evmUserModify: [{ usingBigBlocks: true }],
    sendToEvmWithData: [{
      ...chain,
      token: "USDC",
      amount: "1",
      sourceDex: "spot",
      destinationRecipient: other,
      addressEncoding: "hex",
      destinationChainId: 999,
      gasLimit: 200_000,
      data: "0x",
      nonce: 1
    }],
    borrowLend: [{ operation: "supply", token: 0, amount: "5" }],
    gossipPriorityBid: [{ slotId: 0, ip: "1.2.3.4", maxGas: 100_000_000 }],
    userOutcome: [{ splitOutcome: { outcome: 128_288, amount: "1" } }],
    perpDeploy: [{ haltTrading: { coin: "xyz:XYZ100", isHalted: true } }],
    spotDeploy: [
      { userGenesis: { token, userAndWei: [[other, "5"]], existingTokenAndWei: [[1, "5"]] } },
      { genesis: { token, maxSupply: "7" } }
    ],
    outcomeDeploy: [{ venue: "v", operation: { setSubDeployers: [] } }],
    activateOutcomeDeployer: [{ activate: { venueName: "v" } }, { deactivate: null }],
    finalizeEvmContract: [{ token: 0, input: "firstStorageSlot" }],
    authorizeAqav2Role: [{ token: 0, role: "treasury" }],
    hip3LiquidatorTransfer: [{ dex: "xyz", ntl: 1, isDeposit: true }],
    CValidatorAction: [
      {
        changeProfile: {
          node_ip: null,
          name: null,
          description: null,
          unjailed: true,
          disable_delegations: null,
          commission_bps: null,
          signer: null
        }
      },
      { unregister: null }
    ],
    validatorL1Stream: [{ riskFreeRate: "0.05" }]
  }
  /** A value of each optional member, by its path. */
  const optional: { readonly [path: string]: unknown } = {
    "order orders[0].c": `0x${"d".repeat(32)}`,
    "order builder": { b: other, f: 5 },
    "cancel f": true,
    "cancelByCloid f": true,
    "modify order.c": cloid,
    "modify a": true,
    "batchModify modifies[0].order.c": cloid,
    "batchModify a": true,
    "scheduleCancel time": now + 60_000,
    "twapOrder details": { t: { p: low, a: false }, s: null },
    "twapOrder details.t": { p: low, a: false },
    "twapOrder details.s": yield* markOf("ETH", 0.2),
    "tokenDelegate hyperliquidChain": "Mainnet",
    "tokenDelegate venueChain": "Mainnet",
    "sendAsset fromSubAccount": subAccountUser,
    "approveAgent agentName": "named",
    "vaultModify allowDeposits": false,
    "vaultModify alwaysCloseOnWithdraw": true,
    "reserveRequestWeight destination": other,
    "borrowLend amount": "5",
    "spotDeploy userGenesis.blacklistUsers": [[other, true]],
    "spotDeploy genesis.noHyperliquidity": true,
    "CValidatorAction changeProfile.node_ip": { Ip: "1.2.3.5" },
    "CValidatorAction changeProfile.name": "new",
    "CValidatorAction changeProfile.description": "new",
    "CValidatorAction changeProfile.disable_delegations": true,
    "CValidatorAction changeProfile.commission_bps": 3,
    "CValidatorAction changeProfile.signer": other,
    "trailingStop activationPx": yield* markOf("SOL", 0.1)
  }
  return { samples, optional }
})

const isNullable = (ast: AST.AST): boolean => AST.isUnion(ast) && ast.types.some(AST.isNull)

/** The paths of the members of a schema that can be absent or null. */
const optionalPaths = (ast: AST.AST, path = ""): ReadonlyArray<string> => {
  if (AST.isUnion(ast)) return ast.types.flatMap((each) => optionalPaths(each, path))
  if (AST.isArrays(ast)) return ast.rest.flatMap((each) => optionalPaths(each, `${path}[0]`))
  if (!AST.isObjects(ast)) return []
  return ast.propertySignatures.flatMap(({ name, type }) => {
    const at = path === "" ? String(name) : `${path}.${String(name)}`
    return [...(AST.isOptional(type) || isNullable(type) ? [at] : []), ...optionalPaths(type, at)]
  })
}

const segments = (path: string): ReadonlyArray<string | number> =>
  path.split(/[.[\]]+/u).filter((part) => part !== "").map((part) => /^\d+$/u.test(part) ? Number(part) : part)

const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)

/** Returns a copy with a value at a path; `undefined` removes the member. */
const withAt = (target: unknown, [head, ...rest]: ReadonlyArray<string | number>, value: unknown): unknown => {
  if (head === undefined) return value
  if (isList(target)) return target.map((each, index) => index === head ? withAt(each, rest, value) : each)
  const others = Object.entries(Predicate.isReadonlyObject(target) ? target : {}).filter(([name]) => name !== head)
  const next = withAt(JsonParts.at(target, head), rest, value)
  return Object.fromEntries(next === undefined ? others : [...others, [head, next]])
}

const withMember = (sample: object, path: string, value: unknown): object => {
  const made = withAt(sample, segments(path), value)
  return Predicate.isObject(made) ? made : assert.fail(path)
}

/** The paths of the objects in a value. */
const objectPaths = (value: unknown, path = ""): ReadonlyArray<string> =>
  isList(value)
    ? value.flatMap((each, index) => objectPaths(each, `${path}[${index}]`))
    : Predicate.isReadonlyObject(value)
    ? [
      path,
      ...Object.entries(value).flatMap(([name, each]) => objectPaths(each, path === "" ? name : `${path}.${name}`))
    ]
    : []

const isRefused = (data: unknown): boolean => {
  const statuses = JsonParts.at(data, "statuses") ?? [JsonParts.at(data, "status")]
  return typeof data === "string" && !data.startsWith("0x") ||
    listOf(statuses).some((status) => JsonParts.at(status, "error") !== undefined)
}

describe("an action's members", () => {
  it.effect("are played or refused: each optional one has an effect, and an invented one is named", () =>
    atStart(Effect.gen(function*() {
      const { trading, venue } = yield* SandboxState
      const { optional, samples } = yield* prepare
      const [saved, identity] = [yield* trading.snapshot, yield* Ref.get(venue.state)]
      const run = Effect.fnUntraced(function*(type: string, action: object) {
        yield* trading.restore(saved)
        yield* Ref.set(venue.state, identity)
        const data = yield* act(user, type, action)
        return { data, isRefused: isRefused(data), state: `${JSON.stringify(data)} ${yield* observe}` }
      })
      const mistakes: Array<string> = []
      assert.sameMembers(Object.keys(samples), [...playedTypes].filter((type) => type !== "multiSig"))
      for (const [type, schema] of Object.entries(actionSchemas)) {
        const paths = optionalPaths(schema.ast).map((path) => [path, `${type} ${path}`] as const)
        for (const sample of samples[type] ?? []) {
          const base = yield* run(type, sample)
          if (base.isRefused !== unaccepted.has(type)) {
            mistakes.push(`${type}: the sample is refused: ${JSON.stringify(base.data)}`)
          }
          for (const path of objectPaths(sample)) {
            const invented = path === "" ? "invented" : `${path}.invented`
            const { data } = yield* run(type, withMember(sample, invented, 1))
            const expected = `${shape}: the sandbox does not support "${invented}" of "${type}"`
            if (data !== expected) mistakes.push(`${type} ${invented}: ${JSON.stringify(data)}`)
          }
          for (const [path, name] of paths) {
            if (JsonParts.at(sample, ...segments(path).slice(0, -1)) === undefined) continue
            const absent = yield* run(type, withMember(sample, path, undefined))
            if (!(name in optional)) mistakes.push(`${name}: the test has no value`)
            const present = yield* run(type, withMember(sample, path, optional[name]))
            if (present.state === absent.state) mistakes.push(`${name}: accepted without effect`)
          }
        }
      }
      assert.deepStrictEqual(mistakes, [])
    })))

  it.effect("are refused by name in actions that are not played", () =>
    atStart(Effect.gen(function*() {
      for (const type of Object.keys(actionCatalog).filter((type) => !playedTypes.has(type))) {
        assert.strictEqual(yield* act(user, type), `${shape}: the sandbox does not support "${type}"`)
      }
      assert.strictEqual(
        yield* act(user, "later"),
        `${shape}: the sandbox does not support "later"`
      )
    })))

  it.effect("are refused by name in a multi-sig wrapper and inside it", () =>
    atStart(Effect.gen(function*() {
      const signed = yield* SandboxSigner.signMultiSig({
        nonce: start,
        multiSigUser: keys.multiSigUser.address,
        action: Signed.bigBlocks(true),
        leader: keys.leader,
        cosigners: [keys.leader, keys.cosigner]
      })
      const { action } = signed
      const payload = JsonParts.at(action, "payload")
      const inner = withMember({ action, payload }, "payload.action.invented", 1)
      assert.deepStrictEqual(
        [
          yield* Signed.submit({ ...signed, action: { ...action, invented: 1 } }),
          yield* Signed.submit({ ...signed, action: { ...action, payload: JsonParts.at(inner, "payload") } })
        ],
        [
          `422 ${shape}: the sandbox does not support "invented" of "multiSig"`,
          `422 ${shape}: the sandbox does not support "invented" of "evmUserModify"`
        ]
      )
    })))
})

describe("the venue's rules of 2026", () => {
  it.effect("a modification without a: true rests, with it the order is placed in any case", () =>
    atStart(Effect.gen(function*() {
      const [below, lower, above] = [
        yield* markOf("BTC", -0.1),
        yield* markOf("BTC", -0.12),
        yield* markOf("BTC", 0.02)
      ]
      const oid = oidOf(yield* place(user, btc, "buy", "0.001", below))
      const modify = (to: object, a?: boolean) =>
        act(user, "modify", { oid, order: to, ...(a === undefined ? {} : { a }) })
      const refused =
        "Modify without always_place (a: true) requires a non-trigger order with TIF Alo, or a Gtc order that does not execute."
      const stop = { r: true, t: triggerAt("sl", yield* markOf("BTC", -0.15)) }
      assert.strictEqual(yield* modify(orderOf(btc, "buy", "0.001", above, { tif: "Ioc" })), refused)
      assert.strictEqual(yield* modify(orderOf(btc, "sell", "0.001", yield* markOf("BTC", -0.2), stop)), refused)
      assert.strictEqual(yield* askAt({ type: "openOrders", user }, 0, "oid"), oid)
      assert.isUndefined(yield* modify(orderOf(btc, "buy", "0.001", lower)))
      const [rested] = listOf(yield* ask({ type: "frontendOpenOrders", user }))
      assert.deepStrictEqual([JsonParts.at(rested, "tif"), JsonParts.at(rested, "limitPx")], ["Alo", `${lower}.0`])
      const crossing = { oid: JsonParts.at(rested, "oid"), order: orderOf(btc, "buy", "0.001", above) }
      assert.match(
        String(yield* act(user, "modify", crossing)),
        /^Error placing new order during modify: Post only order would have immediately matched, bbo was [0-9.]+@[0-9.]+\. asset=0$/u
      )
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
      // the order is gone, so the new one is placed only with the flag
      assert.strictEqual(yield* modify(orderOf(btc, "buy", "0.001", lower)), "Cannot modify canceled or filled order")
      assert.isUndefined(yield* modify(orderOf(btc, "buy", "0.001", lower), true))
      assert.strictEqual(yield* askAt({ type: "frontendOpenOrders", user }, 0, "tif"), "Gtc")
      const bought = { oid: 1, order: orderOf(btc, "buy", "0.001", above, { tif: "Ioc" }) }
      const filled = yield* act(user, "batchModify", { modifies: [bought], a: true })
      assert.strictEqual(JsonParts.at(filled, "statuses", 0, "filled", "totalSz"), "0.001")
    })))

  it.effect("flags that are false are not in the hash, so a signature of them is nobody's", () =>
    atStart(Effect.gen(function*() {
      const oid = Number(oidOf(yield* place(user, btc, "buy", "0.001", yield* markOf("BTC", -0.1))))
      const order = orderOf(btc, "buy", "0.001", yield* markOf("BTC", -0.12))
      const nobody = /^err: User or API Wallet 0x[0-9a-f]{40} does not exist\.$/u
      const cancel = { type: "cancel", cancels: [{ a: btc, o: oid }] } as const
      for (const action of [{ ...cancel, f: false }, { type: "modify", oid, order, a: false }]) {
        const hashed = yield* Effect.fromResult(ActionHash.signable(VenueProfile.mainnet, action, { nonce: start }))
        const { domain, message, primaryType, types } = ActionHash.typedData(hashed)
        const account = privateKeyToAccount(keys.trader.privateKey)
        const signed = yield* Effect.promise(() => account.signTypedData({ domain, types, primaryType, message }))
        const [r, s, v] = [`0x${signed.slice(2, 66)}`, `0x${signed.slice(66, 130)}`, Number(`0x${signed.slice(130)}`)]
        const answer = yield* Signed.submit({ action, nonce: start, signature: { r, s, v } })
        assert.match(answer, nobody)
        assert.notInclude(answer, user)
      }
      // sent, but not signed
      const signed = yield* SandboxSigner.signAction(keys.trader, { nonce: start, action: cancel })
      assert.strictEqual(yield* Signed.submit({ ...signed, action: { ...cancel, f: false } }), "ok")
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
    })))

  it.effect("a fast cancel does not reach trigger orders", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.setPosition(user, "BTC", "0.01")
      const resting = oidOf(yield* place(user, btc, "buy", "0.001", yield* markOf("BTC", -0.1)))
      const t = triggerAt("sl", yield* markOf("BTC", -0.1))
      const stop = oidOf(yield* place(user, btc, "sell", "0.001", yield* markOf("BTC", -0.2), { r: true, t }))
      const cancels = [{ a: btc, o: stop }, { a: btc, o: resting }]
      assert.deepStrictEqual(yield* act(user, "cancel", { cancels, f: true }), {
        statuses: [{ error: "Trigger orders cannot be canceled with the fast flag (f: true). asset=0" }, "success"]
      })
      assert.strictEqual(yield* askAt({ type: "openOrders", user }, 0, "oid"), stop)
    })))

  it.effect("mistakes of a whole batch are one error", () =>
    atStart(Effect.gen(function*() {
      const below = yield* markOf("BTC", -0.1)
      const stop = { t: triggerAt("sl", below) }
      const order = (orders: ReadonlyArray<object>, grouping: unknown) => act(user, "order", { orders, grouping })
      const one = (error: string) => ({ statuses: [{ error }] })
      assert.deepStrictEqual(yield* order([], "na"), one("Empty batch."))
      for (
        const [type, member] of [["cancel", "cancels"], ["cancelByCloid", "cancels"], [
          "batchModify",
          "modifies"
        ]] as const
      ) {
        assert.deepStrictEqual(yield* act(user, type, { [member]: [] }), one("Empty batch."))
      }
      const entry = orderOf(btc, "buy", "0.001", below)
      const child = orderOf(btc, "sell", "0.001", below, stop)
      assert.deepStrictEqual(yield* order([entry], "normalTpsl"), one("Unexpected number of trigger orders"))
      assert.deepStrictEqual(yield* order([entry, child], "normalTpsl"), one("TP/SL orders must be reduce only."))
      assert.deepStrictEqual(yield* order([child], "positionTpsl"), one("TP/SL orders must be reduce only."))
      // a stop order that opens a position is no take-profit or stop-loss
      const opening = orderOf(btc, "buy", "0.001", yield* markOf("BTC", 0.2), {
        t: triggerAt("sl", yield* markOf("BTC", 0.1))
      })
      assert.isNumber(oidOf(JsonParts.at(yield* order([opening], "na"), "statuses", 0)))
      const both = { ...entry, t: { ...entry.t, ...stop.t } }
      assert.strictEqual(
        yield* order([both], "na"),
        `${shape}: the sandbox does not support "orders[0].t.trigger" of "order"`
      )
    })))
})

describe("a TWAP order with details", () => {
  const history = askAt({ type: "twapHistory", user }, 0)
  const statusOf = Effect.map(history, (row) => JsonParts.at(row, "status", "status"))
  const twap = { a: eth, b: true, s: "2", r: false, m: 10, t: false }

  it.effect("waits for its trigger, and ends at its stop price", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const play = (price: number) => trading.playPrices("ETH", [{ time: 0, price }])
      yield* play(2_000)
      const details = { t: { p: "2100", a: true }, s: "2200" }
      const placed = yield* act(user, "twapOrder", { twap, details })
      assert.isNumber(JsonParts.at(placed, "status", "running", "twapId"))
      yield* trading.advance(120_000)
      const waiting = yield* history
      assert.deepStrictEqual(
        [JsonParts.at(waiting, "status"), JsonParts.at(waiting, "state", "executedSz")],
        [{ status: "waitingForTrigger" }, "0.0"]
      )
      assert.deepStrictEqual(JsonParts.at(waiting, "state", "trigger"), { px: "2100.0", above: true })
      assert.strictEqual(JsonParts.at(waiting, "state", "stopPx"), "2200.0")
      yield* play(2_100)
      yield* trading.advance(60_000)
      const running = yield* history
      assert.deepStrictEqual(
        [JsonParts.at(running, "status", "status"), JsonParts.at(running, "state", "executedSz")],
        ["activated", "0.3"]
      )
      yield* play(2_200)
      assert.strictEqual(yield* statusOf, "stopped")
      yield* trading.advance(600_000)
      assert.strictEqual(JsonParts.at(yield* history, "state", "executedSz"), "0.3")
    })))

  it.effect("starts at once if the trigger is reached, can be canceled while it waits, and has valid prices", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      const place = (details: object, terms = twap) => act(user, "twapOrder", { twap: terms, details })
      yield* place({ t: { p: "2100", a: false }, s: null })
      assert.strictEqual(yield* statusOf, "activated")
      const sells = yield* place({ t: { p: "1900", a: false }, s: null }, { ...twap, b: false })
      assert.strictEqual(yield* statusOf, "waitingForTrigger")
      const t = JsonParts.at(sells, "status", "running", "twapId")
      assert.deepStrictEqual(yield* act(user, "twapCancel", { a: eth, t }), { status: "success" })
      yield* trading.playPrices("ETH", [{ time: 0, price: 1_890 }])
      assert.strictEqual(yield* statusOf, "terminated")
      assert.deepStrictEqual(
        [
          yield* place({ t: null, s: "1500" }),
          yield* place({ t: { p: "0", a: true }, s: null }),
          yield* place({ t: null, s: "2000.55" })
        ],
        [
          { status: { error: "Invalid TP/SL price. asset=1" } },
          { status: { error: "Invalid TP/SL price. asset=1" } },
          { status: { error: "Price must be divisible by tick size. asset=1" } }
        ]
      )
    })))
})

describe("a priority fee", () => {
  const stakeOf = Effect.map(askAt({ type: "delegatorSummary", user }, "undelegated"), Number)
  const ordered = (p: number, ...orders: ReadonlyArray<object>) =>
    Effect.map(act(user, "order", { orders, grouping: { p } }), (data) => listOf(JsonParts.at(data, "statuses")))

  it.effect("is burned from the undelegated stake: of the filled value, or of the resting value", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("@107", [{ time: 0, price: 40 }])
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setBook("ETH", { bids: [], asks: [{ px: "2000", sz: "1" }, { px: "2010", sz: "1" }] })
      assert.strictEqual(yield* stakeOf, 1_000)
      const [filled] = yield* ordered(80_000, orderOf(eth, "buy", "1.5", "2020", { tif: "Ioc" }))
      assert.strictEqual(JsonParts.at(filled, "filled", "totalSz"), "1.5")
      // 0.08 % of 2000 + 1005 dollars, at 40 dollars
      assert.strictEqual(yield* stakeOf, 1_000 - 0.0601)
      const [resting] = yield* ordered(100_000_000, orderOf(eth, "buy", "0.1", "1990", { tif: "Alo" }))
      assert.isNumber(oidOf(resting))
      // all of 199 dollars, at 40 dollars
      assert.strictEqual(yield* stakeOf, 1_000 - 0.0601 - 4.975)
    })))

  it.effect("is refused without stake, before matching, and for other orders", () =>
    atStart(Effect.gen(function*() {
      const above = yield* markOf("BTC", 0.02)
      const ioc = orderOf(btc, "buy", "0.001", above, { tif: "Ioc" })
      const poor = yield* act(other, "order", { orders: [ioc], grouping: { p: 1 } })
      assert.deepStrictEqual(poor, {
        statuses: [{ error: "Insufficient delegatable balance for priority order" }]
      })
      const error =
        "Priority grouping requires that every order is Ioc, or that every order is Alo and not reduce only."
      const alo = { tif: "Alo" }
      const below = yield* markOf("BTC", -0.1)
      for (
        const orders of [
          [orderOf(btc, "buy", "0.001", below)],
          [orderOf(btc, "sell", "0.001", above, { ...alo, r: true })],
          [ioc, orderOf(btc, "buy", "0.001", below, alo)],
          [orderOf(btc, "buy", "0.001", above, { tif: "FrontendMarket" })],
          [orderOf(btc, "sell", "0.001", below, { r: true, t: triggerAt("sl", below) })]
        ]
      ) assert.deepStrictEqual(yield* ordered(1_000, ...orders), [{ error }])
      assert.deepStrictEqual(yield* ordered(100_000_001, ioc), [{ error: "Priority rate cannot be more than 100%." }])
      assert.deepStrictEqual([yield* ask({ type: "openOrders", user }), yield* stakeOf], [[], 1_000])
    })))

  it.effect("moves an Alo order before those of the last 400 ms that pay less", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setBook("ETH", { bids: [], asks: [] })
      const quote = orderOf(eth, "sell", "1", "2000", { tif: "Alo" })
      const names = new Map<unknown, string>()
      const rest = Effect.fnUntraced(function*(name: string, p?: number) {
        const data = yield* act(user, "order", { orders: [quote], grouping: p === undefined ? "na" : { p } })
        names.set(oidOf(JsonParts.at(data, "statuses", 0)), name)
      })
      yield* rest("old")
      yield* trading.advance(400)
      yield* rest("plain")
      yield* rest("low", 1)
      yield* rest("high", 2)
      yield* rest("same", 2)
      yield* trading.depositUsd(other, "100000")
      const order = orderOf(eth, "buy", "5", "2000", { tif: "Ioc" })
      yield* act(other, "order", { orders: [order], grouping: "na" })
      const fills = listOf(yield* ask({ type: "userFills", user })).toReversed()
      assert.deepStrictEqual(fills.map((fill) => names.get(JsonParts.at(fill, "oid"))), [
        "old",
        "high",
        "same",
        "low",
        "plain"
      ])
    })))
})
