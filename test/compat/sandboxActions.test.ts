/**
 * Every action that the public client libraries send, as they sign it, against the sandbox's venue: it reads all that it plays, by
 * the schemas of the catalog, and refuses the rest in words that say so.
 */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient } from "@nktkas/hyperliquid"
import { actionCatalog, innerAction } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import { hype as hypeToken } from "@trigate/sandbox/unstable/venue/Assets"
import * as VenueExchange from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as path from "node:path"
import { getContractAddress } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { act, btc, eth, markOf, oidOf, place, sol, venueNow } from "../../packages/sandbox/test/trader.ts"
import { atStart, start } from "../../packages/sandbox/test/venue.ts"
import { nonce, ofCcxt, ofPeer, published, type Sample, wrapped } from "../inspector/samples.ts"
import { capitalised, runCompiler, type Sample as Answer } from "./libraryTypes.ts"

const schemas: { readonly [type: string]: AnyCodec } = actionSchemas

/** The action that a body executes. */
const executedBy = ({ body: { action } }: Sample) => innerAction(action) ?? action

describe("the actions of client libraries", () => {
  it.effect("are read by their schemas, and played or refused by name", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const samples = yield* Effect.promise(async () => [
        ...await ofPeer(),
        ...await wrapped(),
        ...await ofCcxt(),
        ...published()
      ])
      const state = yield* Effect.provide(SandboxState.SandboxState, SandboxState.layer())
      const seen = new Set<string>()
      const mistakes: Array<string> = []
      for (const sample of samples) {
        const { type } = executedBy(sample)
        // a wrapper has a signature at least
        const { signatures = [""] } = sample.body.action
        if (!Object.hasOwn(actionCatalog, type) || !Array.isArray(signatures) || signatures.length === 0) continue
        for (const action of new Set([sample.body.action, executedBy(sample)])) {
          seen.add(action.type)
          const schema = schemas[action.type]
          if (schema === undefined || !Schema.is(Schema.toEncoded(schema))(action)) {
            mistakes.push(`${sample.name}: ${action.type} is not of its schema: ${Encoding.stringify(action)}`)
          }
        }
        const profile = sample.network === "mainnet" ? VenueProfile.mainnet : VenueProfile.testnet
        const body = Encoding.encode(Encoding.stringify(sample.body))
        const { status, text } = yield* VenueExchange.submit(profile, state, body)
        const isPlayed = VenueExchange.playedTypes.has(type)
        if (isPlayed ? status !== 200 : !text.endsWith(`the sandbox does not support "${type}"`)) {
          mistakes.push(`${sample.name}: ${status} ${text}`)
        }
      }
      assert.deepStrictEqual(mistakes, [])
      assert.deepStrictEqual(Object.keys(actionCatalog).filter((type) => !seen.has(type)), [])
    }))

  it("that are refused are listed on the page of the sandbox", () => {
    const page = fs.readFileSync(path.join(import.meta.dirname, "../../docs/sandbox.md"), "utf8")
    const [, listed = ""] =
      /supports all actions of the \[catalog\]\([^)]*\)(?: except (.*?))?\. It refuses/su.exec(page) ??
        assert.fail(page)
    const refused = Object.keys(actionCatalog).filter((type) => !VenueExchange.playedTypes.has(type))
    assert.deepStrictEqual(listed.match(/\w+/gu) ?? [], refused)
  })
})

const { trader: { address: user } } = keys
const other = privateKeyToAccount(`0x${"56".repeat(32)}`)
const nobody = `0x${"9".repeat(40)}` as const
const asked = `0x${"2".repeat(40)}` as const

type Row = readonly [params: object | undefined, refusal?: string]

const registered = (sub: string) => `Sub-account ${sub} is not registered to ${user}`

/** The calls of the library's methods, in their order, with the words that refuse them. */
const makeCalls = Effect.gen(function*() {
  const { trading } = yield* SandboxState.SandboxState
  for (const address of [asked, other.address]) yield* trading.depositUsd(address, "5000")
  yield* trading.setVolume(asked, "10000")
  yield* act(asked, "registerReferrer", { code: "THEIRS" })
  const theirs = yield* act(asked, "createVault", {
    name: "theirs",
    description: "",
    initialUsd: 100_000_000,
    nonce: 1
  })
  const vaultAddress = yield* act(user, "createVault", {
    name: "mine",
    description: "",
    initialUsd: 100_000_000,
    nonce: 1
  })
  const subAccountUser = yield* act(user, "createSubAccount", { name: "one" })
  const [below, above] = [yield* markOf("ETH", -0.1), yield* markOf("ETH", 0.05)]
  const oids = yield* Effect.forEach([1, 2, 3], () => Effect.map(place(user, eth, "buy", "0.01", below), oidOf))
  const cloid = `0x${"c".repeat(32)}`
  yield* place(user, eth, "buy", "0.01", below, { c: cloid })
  yield* act(user, "updateLeverage", { asset: sol, isCross: false, leverage: 2 })
  yield* trading.setPosition(user, "SOL", "1")
  yield* trading.setPosition(user, "ANIME", "1000")
  const [anime = eth] = [(yield* venueNow).listing.byCoin.get("ANIME")?.id]
  const twap = { a: eth, b: true, s: "0.2", r: false, m: 5, t: false }
  const twapId = JsonParts.at(yield* act(user, "twapOrder", { twap }), "status", "running", "twapId")
  const order = (t: object, rest: object = {}) => ({ a: eth, b: true, p: below, s: "0.01", r: false, t, ...rest })
  const limit = (tif: string, p: string = below) => order({ limit: { tif } }, { p })
  const trigger = (isMarket: boolean, tpsl: string, triggerPx: string) =>
    order({ trigger: { isMarket, tpsl, triggerPx } })
  const usdc = "USDC:0x6d1e7cde53ba9467b783cb7c530ce054"
  const sent = { sourceDex: "", destinationDex: "xyz", token: usdc, amount: "1" }
  const deployer = "Error deploying perp: not a deployer"
  yield* trading.depositSpot(user, 0, "10")
  yield* trading.depositSpot(user, hypeToken, "3000")
  const { info: { spotMeta: { tokens, universe } } } = yield* venueNow
  const [token, spot] = [tokens, universe].map((all) => Math.max(...all.map(({ index }) => index)) + 1)
  const allocation = {
    userAndWei: [[asked, "9600000000"], [`0x${"f".repeat(40)}`, "400000000"]],
    existingTokenAndWei: [],
    blacklistUsers: [[nobody, true]]
  }
  const registerToken2 = {
    spec: { name: "NEW", szDecimals: 2, weiDecimals: 8 },
    maxGas: 300_000_000_000,
    fullName: "New"
  }
  const registerValidator = (delegations_disabled: boolean) => ({
    register: {
      profile: {
        node_ip: { Ip: "1.2.3.4" },
        name: "mine",
        description: "",
        delegations_disabled,
        commission_bps: 5,
        signer: user
      },
      unjailed: true,
      initial_wei: 1
    }
  })
  const changeProfile = {
    node_ip: { Ip: "1.2.3.5" },
    name: "new",
    description: null,
    unjailed: true,
    disable_delegations: null,
    commission_bps: 4,
    signer: null
  }
  const rows: { readonly [method: string]: ReadonlyArray<Row> } = {
    order: [
      [{ orders: [limit("Gtc"), limit("Alo"), limit("Ioc", above), limit("FrontendMarket", above)], grouping: "na" }],
      [{ orders: [trigger(true, "tp", above)], grouping: "na" }],
      [
        { orders: [order({ limit: { tif: "Ioc" } }, { s: "20" })], grouping: { p: 100_000_000 } },
        "Insufficient delegatable balance for priority order"
      ]
    ],
    modify: [
      [{ oid: oids[0], order: limit("Alo") }],
      [{ oid: 1, order: trigger(false, "sl", below), a: true }]
    ],
    batchModify: [[{ modifies: [{ oid: oids[1], order: trigger(true, "tp", above) }], a: true }]],
    cancel: [[{ cancels: [{ a: eth, o: oids[2] }], f: true }]],
    cancelByCloid: [[{ cancels: [{ asset: eth, cloid }] }]],
    scheduleCancel: [[{ time: start + 60_000 }], [{}]],
    twapOrder: [[{ twap }], [{ twap, details: { t: { p: above, a: true }, s: null } }]],
    twapCancel: [[{ a: eth, t: twapId }]],
    noop: [[{ nonce: start + 1_000 }]],
    updateLeverage: [[{ asset: btc, isCross: true, leverage: 3 }], [
      { asset: anime, isCross: false, leverage: 4 },
      "Invalid leverage value"
    ]],
    updateIsolatedMargin: [[{ asset: sol, isBuy: true, ntli: 2_000_000 }], [{
      asset: sol,
      isBuy: true,
      ntli: -1_000_000
    }]],
    topUpIsolatedOnlyMargin: [[{ asset: anime, leverage: "0.5" }]],
    usdSend: [[{ destination: nobody, amount: "1" }]],
    spotSend: [[{ destination: nobody, token: usdc, amount: "1" }]],
    sendAsset: [[{ ...sent, destination: nobody, fromSubAccount: "" }]],
    agentSendAsset: [
      [{ ...sent, destination: user, fromSubAccount: "" }],
      [{ ...sent, destination: nobody }, "Agent can only send asset to same user or their sub-accounts."]
    ],
    sendToEvmWithData: [[{
      token: "USDC",
      amount: "1",
      sourceDex: "spot",
      destinationRecipient: nobody,
      addressEncoding: "hex",
      destinationChainId: 999,
      gasLimit: 200_000,
      data: "0x"
    }]],
    withdraw3: [[{ amount: "2", destination: nobody }]],
    usdClassTransfer: [
      [{ amount: "1", toPerp: false }],
      [{ amount: `1 subaccount:${nobody}`, toPerp: false }, registered(nobody)]
    ],
    cDeposit: [[{ wei: 1 }]],
    cWithdraw: [[{ wei: 1 }]],
    tokenDelegate: [[{ validator: keys.validator.address, wei: 1, isUndelegate: false }]],
    borrowLend: [
      [{ operation: "supply", token: 0, amount: "30" }],
      [{ operation: "withdraw", token: 0, amount: null }],
      [{ operation: "borrow", token: 0, amount: "1" }, "Cannot borrow token 0"]
    ],
    approveAgent: [[{ agentAddress: `0x${"7".repeat(40)}`, agentName: `test valid_until ${start + 86_400_000}` }]],
    // the address has no account: it is the builder of the caller's program
    approveBuilderFee: [
      [{ maxFeeRate: "0.001%", builder: `0x${"8".repeat(40)}` }],
      [{ maxFeeRate: "0.001%", builder: subAccountUser }, "Builder has insufficient balance to be approved."]
    ],
    linkStakingUser: [
      [{ user: nobody, isFinalize: false }, "Staking link error: the staking user has no stake"],
      [{ user: keys.treasury.address, isFinalize: false }],
      [{ user: nobody, isFinalize: true }, "Staking link error: no link was requested"]
    ],
    stakingLinkDisableTradingUser: [[{ tradingUser: nobody }, "Staking link error: the users are not linked"]],
    agentSetAbstraction: [[{ abstraction: "p" }, "Abstraction transition not allowed"]],
    userDexAbstraction: [[{ user: nobody, enabled: true }, registered(nobody)], [{ user, enabled: true }], [{
      user,
      enabled: false
    }]],
    agentEnableDexAbstraction: [[undefined], [undefined, "Abstraction transition not allowed"]],
    userPortfolioMargin: [[{ user: nobody, enabled: true }, registered(nobody)]],
    userSetAbstraction: [
      [{ user, abstraction: "disabled" }],
      [
        { user: subAccountUser, abstraction: "portfolioMargin" },
        "Portfolio margin requires account value of $10000 or total volume of $5000000."
      ]
    ],
    createSubAccount: [[{ name: "two" }]],
    subAccountModify: [[{ subAccountUser, name: "new" }], [
      { subAccountUser: nobody, name: "new" },
      registered(nobody)
    ]],
    subAccountTransfer: [
      [{ subAccountUser, isDeposit: true, usd: 1_000_000 }],
      [{ subAccountUser: nobody, isDeposit: true, usd: 1 }, `Invalid sub-account transfer from ${user} to ${nobody}`]
    ],
    subAccountSpotTransfer: [
      [{ subAccountUser, isDeposit: true, token: usdc, amount: "1" }],
      [
        { subAccountUser: nobody, isDeposit: false, token: usdc, amount: "1" },
        `Invalid sub-account transfer from ${nobody} to ${user}`
      ]
    ],
    createVault: [
      [{ name: "second", description: "1234567890", initialUsd: 100_000_000 }],
      [
        { name: "third", description: "1234567890", initialUsd: Number.MAX_SAFE_INTEGER },
        "Insufficient balance to create vault"
      ]
    ],
    vaultModify: [
      [{ vaultAddress, allowDeposits: null, alwaysCloseOnWithdraw: true }],
      [
        { vaultAddress: theirs, allowDeposits: true, alwaysCloseOnWithdraw: null },
        "Only leader can perform this vault action."
      ]
    ],
    vaultTransfer: [
      [{ vaultAddress, isDeposit: true, usd: 5_000_000 }],
      [{ vaultAddress: nobody, isDeposit: true, usd: 5_000_000 }, `Vault not registered: ${nobody}`]
    ],
    vaultDistribute: [
      [{ vaultAddress, usd: 1_000_000 }],
      [{ vaultAddress: theirs, usd: 1_000_000 }, "Only leader can perform this vault action."]
    ],
    registerReferrer: [[{ code: "TEST" }]],
    setReferrer: [[{ code: "THEIRS" }], [{ code: "THEIRS" }, "Referrer already set"]],
    claimRewards: [[undefined, "No rewards to claim"]],
    setDisplayName: [[{ displayName: "" }]],
    reserveRequestWeight: [[{ weight: 1 }], [{ weight: 1, destination: nobody }]],
    spotUser: [[{ toggleSpotDusting: { optOut: true } }]],
    evmUserModify: [[{ usingBigBlocks: true }]],
    gossipPriorityBid: [
      [{ slotId: 0, ip: "1.2.3.4", maxGas: 1 }, "Insufficient gas at current auction price."],
      [{ slotId: 0, ip: "1.2.3.4", maxGas: 100_000_000 }]
    ],
    cValidatorAction: [
      [{ unregister: null }, "Unknown validator"],
      [{ changeProfile }, "Unknown validator"],
      [registerValidator(true), "Validator has delegations disabled"],
      [registerValidator(false)],
      [{ changeProfile }],
      [{ unregister: null }],
      [registerValidator(false)]
    ],
    cSignerAction: [[{ jailSelf: null }], [{ unjailSelf: null }]],
    validatorL1Stream: [[{ riskFreeRate: "0.05" }]],
    perpDeploy: [[{ haltTrading: { coin: "TEST0", isHalted: true } }, deployer], [{ disableDex: "xyz" }, deployer]],
    spotDeploy: [
      [{ userGenesis: { token: 0, ...allocation } }, "Genesis error: genesis already happened"],
      [{ genesis: { token: 0, maxSupply: "1", noHyperliquidity: true } }, "Genesis error: genesis already happened"],
      [{ registerSpot: { tokens: [0, 0] } }, "Error deploying spot: incorrect deployer"],
      [{ registerToken2 }],
      [{ registerToken2 }, "Error deploying spot: Gas auction completed. Try again later"],
      [{ userGenesis: { token, ...allocation } }],
      [{ registerSpot: { tokens: [token, 0] } }, "Error deploying spot: missing token max_supply"],
      [{ genesis: { token, maxSupply: "10000000000" } }],
      [{ registerSpot: { tokens: [token, 0] } }],
      [{ registerHyperliquidity: { spot, startPx: "1", orderSz: "1", nOrders: 5, nSeededLevels: 1 } }],
      [{ setDeployerTradingFeeShare: { token, share: "0%" } }],
      [{ enableQuoteToken: { token } }, "Insufficient stake"],
      [{ disableQuoteToken: { token } }, "Error deploying spot: invalid quote token"],
      [{
        requestEvmContract: { token, address: getContractAddress({ from: user, nonce: 7n }), evmExtraWeiDecimals: 10 }
      }]
    ],
    finalizeEvmContract: [
      [{ token: 0, input: { create: { nonce: 0 } } }, "Error deploying spot: Pending EVM contract missing"],
      [{ token, input: "firstStorageSlot" }, "Error deploying spot: invalid EVM contract"],
      [{ token, input: { create: { nonce: 7 } } }]
    ],
    authorizeAqav2Role: [[{ token: 0, role: "technical" }, "Insufficient stake"]],
    hip3LiquidatorTransfer: [
      [{ dex: "xyz", ntl: 1_000_000_000, isDeposit: true }, "Insufficient funds available to deposit."],
      [{ dex: "xyz", ntl: 1_000_000_000, isDeposit: false }, "Insufficient balance for withdrawal."]
    ],
    userOutcome: [
      [{ splitOutcome: { outcome: 0, amount: "1" } }, "Invalid outcome"],
      [{ mergeQuestion: { question: 0, amount: null } }, "Invalid question"]
    ],
    // the account cannot sign alone after this
    convertToMultiSigUser: [[{ signers: { authorizedUsers: [asked], threshold: 1 } }], [
      { signers: null },
      "Multi-sig required"
    ]]
  }
  return rows
})

/** The method whose form the venue has replaced since the library's release. */
const replaced = "activateOutcomeDeployer"

describe("the exchange methods of @nktkas/hyperliquid", () => {
  it.effect("have the library's response types, or the venue's words", () =>
    atStart(Effect.gen(function*() {
      const state = yield* SandboxState.SandboxState
      const rows = yield* makeCalls
      const respond = Effect.runPromiseWith(yield* Effect.context<SandboxState.SandboxState>())
      let sent = start
      const transport = {
        isTestnet: false,
        request: async <T>(_endpoint: string, payload: unknown): Promise<T> => {
          const body = Encoding.encode(Encoding.stringify(payload))
          const { status, text } = await respond(VenueExchange.submit(VenueProfile.mainnet, state, body))
          // the library's method promises whatever type its caller names
          const isAnswer = (value: unknown): value is T => value !== undefined
          const answer: unknown = status === 200 ? JSON.parse(text) : undefined
          return isAnswer(answer) ? answer : assert.fail(`${status} ${text}`)
        }
      }
      const wallet = privateKeyToAccount(keys.trader.privateKey)
      const exchange = new ExchangeClient({ transport, wallet, nonceManager: () => ++sent })
      const methods = Object.getOwnPropertyNames(ExchangeClient.prototype).filter((name) => name !== "constructor")
      assert.sameMembers([...Object.keys(rows), replaced], methods)
      const mistakes: Array<string> = []
      const answers: Array<Answer> = []
      for (const [name, calls] of Object.entries(rows)) {
        const call: unknown = Reflect.get(exchange, name)
        if (!Predicate.isFunction(call)) continue
        for (const [params, refusal] of calls) {
          const answer = yield* Effect.promise(async (): Promise<unknown> => {
            try {
              return await Reflect.apply(call, exchange, params === undefined ? [] : [params])
            } catch (error) {
              return error
            }
          })
          if (answer instanceof Error) {
            const words = answer.message.replace(/^order \d+: /u, "")
            if (words !== refusal) mistakes.push(`${name} ${JSON.stringify(params)}: ${words}`)
          } else if (refusal !== undefined) mistakes.push(`${name} ${JSON.stringify(params)} is accepted`)
          // the library's type lacks the index of the registered token or pair
          else if (name !== "spotDeploy" || JsonParts.at(answer, "response", "data") === undefined) {
            answers.push({ name, type: `${capitalised(name)}SuccessResponse`, value: answer })
          }
        }
      }
      assert.deepStrictEqual(mistakes, [])
      assert.deepStrictEqual(yield* runCompiler("exchange", answers), [])
    })))
})
