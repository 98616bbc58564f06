/**
 * One test suite for every implementation of the gateway's services: in-memory layers, live layers that call a sandbox
 * server, and clients.
 *
 * The target has to be a mainnet sandbox with the example state. The checks change this state and restore it as far as
 * possible, so run them one after the other.
 */
import type { AnySignedAction } from "@trigate/domain/actions/Action"
import type { ActionResult, RejectionReason } from "@trigate/domain/actions/ActionOutcome"
import { type CandleWindow, type CandleWindowRequest, openTimeAt, retainedBars } from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Hash } from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import * as SpotLookup from "@trigate/domain/info/Market"
import type { Methods, Operation } from "@trigate/domain/operations/Operation"
import * as Addresses from "@trigate/domain/tokens/TokenData"
import type { DetectedAddress, TokenData, TonAddress } from "@trigate/domain/tokens/TokenData"
import {
  coins,
  contracts,
  keys,
  type TestKey,
  tokens as tokenExamples,
  traderStake,
  transactions
} from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import type { Unhashable } from "@trigate/signing/unstable/actions/ActionHash"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** Options of the conformance suite. */
export interface Options {
  /**
   * Milliseconds from the clock's time to the first nonce. Default: 0. For two runs against one sandbox in quick
   * succession, use values that differ by at least 1000, so that no nonce is used twice.
   */
  readonly firstNonce?: number
}

/** Returns the checks, in order. A check fails with the expected and the actual value. */
export const conformance = (target: ConformanceTarget, options: Options = {}): ReadonlyArray<ConformanceCheck> => [
  ...exchangeChecks(target, options.firstNonce ?? 0),
  ...marketChecks(target),
  ...tokenChecks(target),
  ...layer2Checks(target),
  ...declaredChecks(target)
]

/** The failure of a check, with the expected and the actual value. */
export class ConformanceFailure extends Schema.TaggedError<ConformanceFailure>()("ConformanceFailure", {
  expected: Schema.String,
  found: Schema.String
}) {
  override get message() {
    return `Expected ${this.expected}, found ${this.found}`
  }
}

/** A named check. It fails with the expected and the actual value. */
export interface ConformanceCheck {
  readonly name: string
  readonly effect: Effect.Effect<void, ConformanceFailure>
}

type Tagged = { readonly _tag: string }

const show = (value: unknown): string => {
  const text = Json.stringify(value) ?? String(value)
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}

const fail = (expected: string, found: unknown) =>
  Effect.fail(new ConformanceFailure({ expected, found: Predicate.isString(found) ? found : show(found) }))

const words = (error: Tagged): string => `${error._tag} ${Predicate.isError(error) ? error.message : ""} ${show(error)}`

/** Returns the value of a call that has to succeed. */
const succeeds = <A, E extends Tagged>(call: Effect.Effect<A, E>): Effect.Effect<A, ConformanceFailure> =>
  call.pipe(Effect.catch((error) => fail("a success", words(error))))

const hasFields = (error: unknown, fields: { readonly [name: string]: unknown }): boolean =>
  Object.entries(fields).every(([name, value]) =>
    Predicate.hasProperty(error, name) && Equal.equals(error[name], value)
  )

/** Checks that a call fails with one of the given error tags; `fields` are the expected fields of the error. */
const failsWith = <A, E extends Tagged>(
  call: Effect.Effect<A, E>,
  tags: ReadonlyArray<string>,
  fields: { readonly [name: string]: unknown } = {}
): Effect.Effect<void, ConformanceFailure> => {
  const expected = `${tags.join(" or ")} ${show(fields)}`
  return Effect.matchEffect(call, {
    onSuccess: (value) => fail(expected, value),
    onFailure: (failure) => {
      // services and clients return the error as the reason of an `UpstreamError` or a `RequestError`; a decoded error
      // is returned without such a wrapper
      const error: Tagged = unwrapReason(failure)
      return tags.includes(error._tag) && hasFields(error, fields) ? Effect.void : fail(expected, words(error))
    }
  })
}

/** Checks that two values are structurally equal. */
const equals = (what: string, found: unknown, expected: unknown): Effect.Effect<void, ConformanceFailure> =>
  Equal.equals(found, expected) ? Effect.void : fail(`${what} to be ${show(expected)}`, found)

/** Checks that a value is present, and returns it. */
const present = <A>(what: string, found: A | null): Effect.Effect<A, ConformanceFailure> =>
  found === null ? fail(what, null) : Effect.succeed(found)

/** Checks a condition on a value. */
const holds = (what: string, condition: boolean, found: unknown): Effect.Effect<void, ConformanceFailure> =>
  condition ? Effect.void : fail(what, found)

/** A call of one of the target's methods. Its errors have a tag (`_tag`). */
type TargetCall<A> = Effect.Effect<A, Tagged>

interface AddressRequest {
  readonly address: TonAddress
}

/** The five services of a gateway, or the typed client of a gateway. Any object with these methods is accepted. */
export interface ConformanceTarget {
  readonly exchange: {
    readonly submit: (signed: AnySignedAction) => TargetCall<ActionResult>
  }
  readonly info: Methods<Omit<typeof infoOperations, "candleSnapshot">, Tagged> & {
    readonly candleSnapshot: (request: CandleWindowRequest) => TargetCall<CandleWindow>
  }
  readonly evm: Methods<typeof evmOperations, Tagged>
  readonly tokens: {
    readonly getTokenData: (request: AddressRequest) => TargetCall<TokenData>
    readonly packAddress: (request: AddressRequest) => TargetCall<string>
    readonly unpackAddress: (request: AddressRequest) => TargetCall<string>
    readonly detectAddress: (request: AddressRequest) => TargetCall<DetectedAddress>
  }
  readonly layer2: Methods<typeof layer2Operations, Tagged>
}

type DeclaredCall = (request: unknown) => Effect.Effect<unknown, { readonly _tag: string }>

const isCall = (value: unknown): value is DeclaredCall => Predicate.isFunction(value)

const tables = { info: infoOperations, evm: evmOperations, layer2: layer2Operations } as const

const makeChecks = (group: keyof typeof tables, methods: object): ReadonlyArray<ConformanceCheck> =>
  Object.entries<Operation<string, "read">>(tables[group]).map(([name, { example, request, response }]) => ({
    name: `${group}.${name} responds to its example request`,
    effect: Effect.gen(function*() {
      const method: unknown = Reflect.get(methods, name)
      if (!isCall(method)) return yield* holds(`a method ${name}`, false, method)
      const result = yield* succeeds(method(yield* Effect.orDie(Schema.decodeUnknownEffect(request)(example))))
      // the result of `candleSnapshot` does not match the response schema, because it also reports missing bars
      if (name !== "candleSnapshot") {
        yield* holds("a response that matches the schema", Schema.is(response)(result), result)
      }
    })
  }))

/** Returns the declaredChecks of all typed operations. */
const declaredChecks = ({ evm, info, layer2 }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => [
  ...makeChecks("info", info),
  ...makeChecks("evm", evm),
  ...makeChecks("layer2", layer2)
]

/** Fields that the layer 2 families add to receipts. These fields have to be preserved. */
const extras: ReadonlyArray<readonly [family: string, hash: Hash, fields: ReadonlyArray<string>]> = [
  ["OP stack", transactions.opStack, ["l1Fee", "l1GasUsed", "l1GasPrice", "daFootprintGasScalar", "blobGasUsed"]],
  ["OP stack before Bedrock", transactions.opLegacy, ["l1Fee", "l1FeeScalar"]],
  ["OP deposit", transactions.opDeposit, ["depositNonce", "depositReceiptVersion"]],
  ["Arbitrum", transactions.arbitrum, ["gasUsedForL1", "l1BlockNumber", "timeboosted"]],
  ["zkSync", transactions.zksync, ["l1BatchNumber", "l1BatchTxIndex", "l2ToL1Logs", "root"]],
  ["Linea", transactions.linea, []]
]

/** Returns the layer2Checks of the target's `layer2` methods. */
const layer2Checks = ({ layer2 }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => {
  const getReceipt = (hash: Hash) =>
    Effect.flatMap(
      succeeds(layer2.getTransactionReceipt({ hash })),
      (receipt) => present(`a receipt of ${hash}`, receipt)
    )
  return [
    ...extras.map(([family, hash, fields]) => ({
      name: `a receipt of ${family} keeps the family's fields`,
      effect: Effect.gen(function*() {
        const receipt = yield* getReceipt(hash)
        yield* equals("the receipt's hash", receipt.transactionHash, hash)
        yield* equals("the receipt's status", receipt.status, "success")
        for (const field of fields) yield* holds(`the field ${field}`, receipt[field] !== undefined, receipt)
      })
    })),
    {
      name: "a zkSync log keeps the fields that zkSync clients need",
      effect: Effect.gen(function*() {
        const { logs } = yield* getReceipt(transactions.zksync)
        yield* equals("the index of the first log in its transaction", logs[0]?.["transactionLogIndex"], "0x0")
      })
    },
    {
      name: "a failed transaction has a receipt with the status `failure`",
      effect: Effect.flatMap(
        getReceipt(transactions.failed),
        ({ status }) => equals("the receipt's status", status, "failure")
      )
    },
    {
      name: "a contract creation has a contract address and no recipient",
      effect: Effect.gen(function*() {
        const { contractAddress, to } = yield* getReceipt(transactions.creation)
        yield* equals("to", to, null)
        yield* holds("a contract address", typeof contractAddress === "string", contractAddress)
      })
    },
    {
      name: "an unknown transaction has no receipt",
      effect: Effect.flatMap(
        succeeds(layer2.getTransactionReceipt({ hash: transactions.unknown })),
        (receipt) => equals("the receipt", receipt, null)
      )
    }
  ]
}

/** An unvalidated address, as an untyped caller could send it. */
const unchecked = Schema.String.pipe(Schema.brand("TonAddress"))

const tokenAt = (address: string) => ({ address: unchecked.make(address) })

const rawAddress = (text: string): string =>
  Result.match(Addresses.parse(text), { onFailure: ({ reason }) => reason, onSuccess: Addresses.formatRaw })

const wallet = "d76767392e7035d84ba6f83960b9399f62430ebcd7850a1e2b043d2d826c2370"

/** Returns the tokenChecks of the target's `tokens` methods. */
const tokenChecks = ({ tokens }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => {
  const describes = (address: string, expected: { readonly [field: string]: unknown }) =>
    Effect.flatMap(
      succeeds(tokens.getTokenData(tokenAt(address))),
      (token) => equals("the token", { ...token }, { address, burnable: true, ...expected })
    )
  return [
    {
      name: "a token with on-chain metadata and an exact supply above 2^64",
      effect: describes(tokenExamples.onchain, {
        name: "Trigate Sandbox",
        symbol: "TRIG",
        decimals: 9,
        totalSupply: "1180591620717411303424123",
        mintable: true,
        metadata: "onchain"
      })
    },
    {
      name: "a supply above 2^53 that a server prints as a JSON number",
      effect: describes(tokenExamples.number, {
        name: "Sandbox Number",
        symbol: "NUM",
        decimals: 18,
        totalSupply: "9007199254740993001",
        mintable: false,
        metadata: "onchain"
      })
    },
    {
      name: "a token whose name is in its metadata document",
      effect: describes(tokenExamples.semichain, {
        name: "Sandbox Dollar",
        symbol: "USD₮",
        decimals: 6,
        totalSupply: "1030000002000000",
        mintable: true,
        metadata: "offchain"
      })
    },
    {
      name: "a token whose document cannot be fetched",
      effect: describes(tokenExamples.semichainCpp, {
        decimals: 6,
        totalSupply: "1256732342639",
        mintable: true,
        metadata: "unresolved"
      })
    },
    {
      name: "a token is found by any form of its address",
      effect: Effect.flatMap(
        succeeds(tokens.getTokenData(tokenAt(rawAddress(tokenExamples.offchain)))),
        (token) => equals("the address", token.address, tokenExamples.offchain)
      )
    },
    ...[
      [tokenExamples.jettonWallet, "jetton_wallet"],
      [tokenExamples.nftItem, "nft_item"],
      [tokenExamples.nftCollection, "nft_collection"],
      [tokenExamples.wallet, "none"]
    ].map(([address = "", contractType]) => ({
      name: `${address} is a contract of type ${contractType}, not a token`,
      effect: failsWith(tokens.getTokenData(tokenAt(address)), ["TokenNotFound"], { address, contractType })
    })),
    {
      name: "an address with a wrong checksum is refused",
      // a typed client already refuses the address when it encodes the request
      effect: failsWith(tokens.getTokenData(tokenAt(tokenExamples.invalid)), ["InvalidAddress", "InvalidRequest"])
    },
    {
      name: "addresses are packed, unpacked and detected",
      effect: Effect.gen(function*() {
        const packed = yield* succeeds(tokens.packAddress(tokenAt(`0:${wallet}`)))
        yield* equals("the packed address", rawAddress(packed), `0:${wallet}`)
        const unpacked = yield* succeeds(tokens.unpackAddress(tokenAt(tokenExamples.wallet)))
        yield* equals("the unpacked address", unpacked.toLowerCase(), `0:${wallet}`)
        const detected = yield* succeeds(tokens.detectAddress(tokenAt(tokenExamples.wallet)))
        yield* equals("the detected form", detected.given_type, "friendly_bounceable")
        yield* equals("the raw form", detected.raw_form, `0:${wallet}`)
        yield* equals("the bounceable form", detected.bounceable.b64url, tokenExamples.wallet)
      })
    }
  ]
}

const minute = 60_000
const day = 1_440 * minute

const wrappedName = `0x${"577261707065642048595045".padEnd(62, "0")}18`

/** Returns the marketChecks of the target's `info` and `evm` methods. */
const marketChecks = ({ evm, info }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => [
  {
    name: "spot pairs and tokens are found by their index, not by their position in the list",
    effect: Effect.gen(function*() {
      const meta = yield* succeeds(info.spotMeta())
      const lookup = SpotLookup.make(meta)
      const hype = Option.flatMap(lookup.pair(107), (pair) => lookup.tokensOf(pair).base)
      yield* equals("the base of pair @107", Option.getOrNull(hype)?.name, "HYPE")
      const pairGap = meta.universe.findIndex(({ index }, position) => index !== position)
      yield* equals("the first gap between pairs", Option.getOrNull(lookup.pair(pairGap)), null)
      const tokenGap = meta.tokens.findIndex(({ index }, position) => index !== position)
      yield* equals("the first gap between tokens", Option.getOrNull(lookup.token(tokenGap)), null)
    })
  },
  ...[coins.perpetual, coins.spotByName, coins.spotByIndex, coins.builder].map((coin) => ({
    name: `${coin} has hourly bars, and the last bar has not closed`,
    effect: Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const window = { coin, interval: "1h", startTime: now - day } as const
      const { candles, coverage, forming } = yield* succeeds(info.candleSnapshot(window))
      yield* equals("the coverage", coverage, "complete")
      yield* holds("25 bars, or 26 around the turn of an hour", candles.length === 25 || candles.length === 26, candles)
      const opens = candles.map(({ t }) => t)
      yield* equals("the bars' opening times", opens, opens.map((_, index) => (opens[0] ?? 0) + index * 60 * minute))
      yield* equals(
        "the opening time of the bar that has not closed",
        forming?.t,
        openTimeAt("1h", yield* Clock.currentTimeMillis)
      )
    })
  })),
  {
    name: "a window wider than the retained bars is cut to the newest 5000",
    effect: Effect.gen(function*() {
      const { candles, coverage } = yield* succeeds(
        info.candleSnapshot({ coin: coins.perpetual, interval: "1m", startTime: 0 })
      )
      yield* equals("bars", candles.length, retainedBars)
      yield* equals("the coverage", coverage, "truncated")
    })
  },
  {
    name: "a window older than the retained bars is empty",
    effect: Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const window = {
        coin: coins.perpetual,
        interval: "1m",
        startTime: now - 30 * day,
        endTime: now - 20 * day
      } as const
      const { candles, coverage } = yield* succeeds(info.candleSnapshot(window))
      yield* equals("bars", candles.length, 0)
      yield* equals("the coverage", coverage, "agedOut")
    })
  },
  {
    name: "an unknown coin fails with UnknownAsset, which clients do not retry",
    effect: failsWith(
      info.candleSnapshot({ coin: coins.unknown, interval: "1d", startTime: 0 }),
      ["UnknownAsset"],
      { coin: coins.unknown }
    )
  },
  {
    name: "storage words are read, and are zero at an address without a contract",
    effect: Effect.gen(function*() {
      const word = (address: typeof contracts[keyof typeof contracts]) =>
        succeeds(evm.getStorageAt({ address, slot: "0x0" }))
      yield* equals("slot 0 of the wrapped token", yield* word(contracts.wrapped), wrappedName)
      yield* equals("slot 0 of an address without a contract", yield* word(contracts.none), `0x${"0".repeat(64)}`)
    })
  },
  {
    name: "both gas prices are returned",
    effect: Effect.gen(function*() {
      for (const price of [yield* succeeds(evm.gasPrice()), yield* succeeds(evm.bigBlockGasPrice())]) {
        yield* holds("a gas price between 0.001 and 100 gwei", price > 1_000_000n && price < 100_000_000_000n, price)
      }
    })
  },
  {
    name: "an unknown account uses small blocks",
    effect: Effect.flatMap(
      succeeds(evm.usingBigBlocks({ address: keys.stranger.address })),
      (usesBigBlocks) => equals("eth_usingBigBlocks", usesBigBlocks, false)
    )
  }
]

const { agent, cosigner, jailedValidator, leader, multiSigUser, stranger, trader, validator } = keys

const bigBlocks = (usingBigBlocks: boolean) => ({ type: "evmUserModify", usingBigBlocks }) as const

const unjail = { type: "CSignerAction", unjailSelf: null } as const

const delegation = (target: `0x${string}`, wei: bigint, nonce: number, isUndelegate = false) => ({
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: target,
  wei,
  isUndelegate,
  nonce
} as const)

// every action in this file can be hashed; a failure is an error of the suite itself
const orDie = <A>(effect: Effect.Effect<A, Unhashable>): Effect.Effect<A> => Effect.orDie(effect)

/**
 * Returns the exchangeChecks of the target's `exchange` methods. The nonces begin `firstNonce` milliseconds after the clock's
 * time.
 */
const exchangeChecks = (target: ConformanceTarget, firstNonce: number): ReadonlyArray<ConformanceCheck> => {
  const { evm, exchange } = target
  let taken = 0
  const nextNonce = Effect.map(Clock.currentTimeMillis, (now) => {
    taken += 1
    return now + firstNonce + taken
  })
  const signed = (
    key: TestKey,
    action: (nonce: number) => SandboxSigner.Unsigned["action"],
    envelope: Partial<SandboxSigner.Unsigned> = {},
    profile = VenueProfile.mainnet
  ) =>
    Effect.flatMap(nextNonce, (fresh) => {
      const nonce = envelope.nonce ?? fresh
      return SandboxSigner.signAction(key, { ...envelope, nonce, action: action(nonce) }, profile)
    })
  const together = (changes: Partial<SandboxSigner.MultiSigRequest>) =>
    Effect.flatMap(nextNonce, (nonce) =>
      SandboxSigner.signMultiSig({
        nonce,
        multiSigUser: multiSigUser.address,
        action: bigBlocks(false),
        leader,
        cosigners: [leader, cosigner],
        ...changes
      }))

  type Signed = ReturnType<typeof signed>
  const submit = (action: Signed) => Effect.flatMap(orDie(action), exchange.submit)
  const accepted = (action: Signed) =>
    Effect.flatMap(
      succeeds(submit(action)),
      ({ entries, response, status }) =>
        equals(
          "the venue's response",
          { status, type: response.type, entries },
          { status: "ok", type: "default", entries: [{ _tag: "Done" }] }
        )
    )
  const rejected = (reason: RejectionReason, message: string, action: Signed) =>
    failsWith(submit(action), ["ActionRejected"], { reason, message })

  return [
    {
      name: "an account's choice of big blocks is read back",
      effect: Effect.gen(function*() {
        const read = succeeds(evm.usingBigBlocks({ address: trader.address }))
        yield* accepted(signed(trader, () => bigBlocks(true)))
        yield* equals("eth_usingBigBlocks", yield* read, true)
        yield* accepted(signed(trader, () => bigBlocks(false)))
        yield* equals("eth_usingBigBlocks", yield* read, false)
      })
    },
    {
      name: "stake is delegated and undelegated",
      effect: Effect.andThen(
        accepted(signed(trader, (nonce) => delegation(validator.address, 5_000_000_001n, nonce))),
        accepted(signed(trader, (nonce) => delegation(validator.address, 5_000_000_001n, nonce, true)))
      )
    },
    { name: "a validator unjails itself", effect: accepted(signed(jailedValidator, () => unjail)) },
    { name: "an API wallet acts for its account", effect: accepted(signed(agent, () => bigBlocks(false))) },
    {
      name: "an action of a type without a schema is sent as signed",
      effect: accepted(signed(trader, () => ({ type: "noop" })))
    },
    { name: "a multi-sig action with enough signatures is executed", effect: accepted(together({})) },
    {
      name: "the rejection of an unknown signer contains the address recovered from the signature",
      effect: failsWith(submit(signed(stranger, () => bigBlocks(true))), ["ActionRejected"], {
        reason: "UnknownSigner",
        message: `User or API Wallet ${stranger.address} does not exist.`,
        signer: stranger.address
      })
    },
    {
      name: "identical bytes are not accepted twice",
      effect: Effect.gen(function*() {
        const action = yield* orDie(signed(trader, () => bigBlocks(false)))
        yield* succeeds(exchange.submit(action))
        yield* failsWith(exchange.submit(action), ["NonceAlreadyUsed"], { signer: trader.address, nonce: action.nonce })
      })
    },
    {
      name: "a nonce outside the window is refused before it is sent",
      effect: Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        for (const nonce of [now - 3 * day, now + 2 * day]) {
          yield* failsWith(submit(signed(trader, () => bigBlocks(true), { nonce })), ["NonceOutOfWindow"], { nonce })
        }
      })
    },
    {
      name: "the nonce inside an action must equal the body's nonce",
      effect: failsWith(
        submit(signed(trader, (nonce) => delegation(validator.address, 1n, nonce + 1))),
        ["NonceMismatch"]
      )
    },
    {
      name: "only a validator jails itself",
      effect: rejected("NotValidator", "Signer invalid or inactive for current epoch", signed(trader, () => unjail))
    },
    {
      name: "stake can be delegated to validators only",
      effect: rejected(
        "Refused",
        "Unknown validator",
        signed(trader, (nonce) => delegation(contracts.none, 1n, nonce))
      )
    },
    {
      name: "a delegation cannot exceed the balance",
      effect: rejected(
        "Refused",
        "Insufficient stake",
        signed(trader, (nonce) => delegation(validator.address, traderStake * 10_000_000n, nonce))
      )
    },
    {
      name: "an API wallet cannot delegate stake",
      effect: rejected(
        "UnknownSigner",
        `Must deposit before performing actions. User: ${agent.address}`,
        signed(agent, (nonce) => delegation(validator.address, 1n, nonce))
      )
    },
    {
      name: "an expired action is refused",
      effect: Effect.flatMap(Clock.currentTimeMillis, (now) =>
        rejected(
          "Expired",
          "Action already expired",
          signed(trader, () => bigBlocks(true), { expiresAfter: now - 60_000 })
        ))
    },
    {
      name: "an unknown vault is refused",
      effect: rejected(
        "VaultUnknown",
        `Vault not registered: ${contracts.none}`,
        signed(trader, () => bigBlocks(true), { vaultAddress: contracts.none })
      )
    },
    {
      name: "an action signed for the other network is refused",
      effect: failsWith(
        submit(signed(
          trader,
          (nonce) => ({ ...delegation(validator.address, 1n, nonce), hyperliquidChain: "Testnet" }),
          {},
          VenueProfile.testnet
        )),
        ["InvalidSignature"]
      )
    },
    {
      name: "a multi-sig action with too few signatures is refused",
      effect: rejected("MultiSig", "Multi-sig threshold not met", together({ cosigners: [leader] }))
    },
    {
      name: "a signature of an unauthorized co-signer is refused",
      effect: rejected("MultiSig", "Invalid multi-sig inner signer", together({ cosigners: [leader, stranger] }))
    },
    {
      name: "an unauthorized leader is refused",
      effect: rejected("MultiSig", "Multi-sig outer signer must be an L1 user.", together({ leader: stranger }))
    },
    {
      name: "an action variant that only the documentation contains is relayed, and refused by the venue",
      effect: Effect.gen(function*() {
        const action = yield* orDie(signed(trader, () => bigBlocks(true)))
        yield* failsWith(
          exchange.submit({ ...action, action: { type: "evmUserModify", modifications: [] } }),
          ["ActionRejected"],
          { reason: "ShapeRefused" }
        )
      })
    }
  ]
}
