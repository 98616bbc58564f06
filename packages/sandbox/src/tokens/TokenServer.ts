/**
 * The token chain's HTTP API v2 in the formats of both server families, and the contracts and documents that it serves.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as TokenData from "@trigate/domain/tokens/TokenData"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import * as Random from "../Seed.ts"
import { withEntry, withoutEntry } from "../venue/VenueState.ts"
import { walletCode } from "./JettonCode.ts"
import type * as TokenMachine from "./TokenMachine.ts"

/** The implementation of the TON HTTP API whose formats apply: the older server (Python) or the newer server (C++). */
export type Dialect = "python" | "cpp"

/** Metadata of a token contract (TEP-64): on-chain attributes, or the URI of a document. */
export type Content =
  | { readonly type: "onchain"; readonly data: { readonly [attribute: string]: string } }
  | { readonly type: "offchain"; readonly data: string }

/** A contract. Addresses in it can be raw or friendly; amounts are in the smallest unit. */
export type Contract =
  | {
    readonly kind: "jetton_master"
    readonly supply: bigint
    readonly mintable: boolean
    /** The admin's address; absent if the token has no admin. */
    readonly admin?: string
    readonly content: Content
  }
  | { readonly kind: "jetton_wallet"; readonly balance: bigint; readonly owner: string; readonly jetton: string }
  | {
    readonly kind: "nft_collection"
    readonly nextItemIndex: bigint
    readonly owner: string
    readonly content: Content
  }
  | {
    readonly kind: "nft_item"
    readonly index: bigint
    readonly collection: string
    readonly owner: string
    readonly content: Content
  }
  /** A wallet: active, with a balance in nanotons, and not a token contract. */
  | { readonly kind: "wallet"; readonly balance: bigint; readonly seqno: number }
  /** An account with a balance in nanotons and without code. Its first message can deploy a wallet. */
  | { readonly kind: "account"; readonly balance: bigint }

/** A token contract: any contract except a plain wallet and an account without code. */
export type TokenContract = Exclude<Contract, { readonly kind: "wallet" | "account" }>

/**
 * A contract that the sandbox stores as data, without code. Get methods of contracts with code run in the virtual
 * machine.
 */
export type Described = Exclude<Contract, { readonly kind: "jetton_master" | "jetton_wallet" | "account" }>

/** Returns whether the sandbox stores a contract only as data, without code. */
export const isDescribed = (contract: Contract | undefined): contract is Described =>
  contract !== undefined && contract.kind !== "jetton_master" && contract.kind !== "jetton_wallet" &&
  contract.kind !== "account"

/** Returns whether a contract is a token contract. */
export const isToken = (contract: Contract | undefined): contract is TokenContract =>
  contract !== undefined && contract.kind !== "wallet" && contract.kind !== "account"

/** The state of the token chain. */
export interface TokenState {
  /** The contracts, by raw address in lower case. */
  readonly contracts: ReadonlyMap<string, { readonly contract: Contract; readonly dialect: Dialect }>
  /** The server family whose format is used for responses about addresses without a contract. */
  readonly dialect: Dialect
  /** Metadata documents by URI. As with a live chain, the gateway fetches the documents; the chain's servers do not. */
  readonly documents: ReadonlyMap<string, unknown>
}

/** Returns the key under which an account is stored: its raw address. */
export const accountKey = (account: TokenData.Account): string => TokenData.formatRaw(account)

/** Makes the controls of the token chain. */
export const controls = (state: Ref.Ref<TokenState>) => {
  const change = (
    address: string,
    to: (known: TokenState["contracts"], key: string) => TokenState["contracts"]
  ) =>
    Effect.flatMap(
      Effect.fromResult(TokenData.parse(address)),
      (account) => Ref.update(state, (known) => ({ ...known, contracts: to(known.contracts, accountKey(account)) }))
    )
  return {
    /** Contracts by raw address, and metadata documents by URI. */
    state,
    /**
     * Deploys or replaces a contract. `dialect` is the server family whose format is used for responses about the
     * contract. Default: C++.
     */
    putContract: (address: string, contract: Contract, dialect: Dialect = "cpp") =>
      change(address, (contracts, key) => withEntry(contracts, key, { contract, dialect })),
    /** Publishes a JSON document at a URI, to which contracts can refer. */
    putDocument: (uri: string, document: unknown) =>
      Ref.update(state, (known) => ({ ...known, documents: withEntry(known.documents, uri, document) })),
    /** Removes a contract. After that, the account at its address is uninitialized. */
    removeContract: (address: string) => change(address, withoutEntry)
  }
}

/**
 * Reads and sets the state of the token chain. Addresses can be raw or friendly. A method fails with `InvalidAddress`
 * if its address is invalid.
 */
export type TokenControls = ReturnType<typeof controls>

/** Returns pseudo-random bytes in base64. They are not valid code. */
const base64 = (seed: Random.Seed, key: string, bytes: number): string => {
  const hex = Random.hex(seed, key, bytes * 2).slice(2)
  const pairs = hex.match(/../gu) ?? []
  return btoa(String.fromCharCode(...pairs.map((pair) => Number.parseInt(pair, 16))))
}

const members = (contract: TokenContract): { readonly [name: string]: unknown } => {
  switch (contract.kind) {
    case "jetton_master":
      return {
        total_supply: contract.supply,
        mintable: contract.mintable,
        ...(contract.admin === undefined ? {} : { admin_address: contract.admin }),
        jetton_content: contract.content,
        jetton_wallet_code: walletCode
      }
    case "jetton_wallet":
      return {
        balance: contract.balance,
        owner: contract.owner,
        jetton: contract.jetton,
        jetton_wallet_code: walletCode
      }
    case "nft_collection":
      return {
        next_item_index: contract.nextItemIndex,
        owner_address: contract.owner,
        collection_content: contract.content
      }
    case "nft_item":
      return {
        init: true,
        index: contract.index,
        collection_address: contract.collection,
        owner_address: contract.owner,
        content: contract.content
      }
  }
}

const echoed = (address: string): string =>
  address.includes(":") ? address.toUpperCase() : address.replaceAll("+", "-").replaceAll("/", "_")

/**
 * Encodes the `result` of `getTokenData`. `address` is in the form that the caller sent.
 *
 * The Python family encodes integers as JSON numbers, without `@type` and `address`. The C++ family encodes integers as
 * decimal strings and returns the address.
 */
const describe = (dialect: Dialect, address: string, contract: TokenContract) => {
  const described: { readonly [name: string]: unknown } = { ...members(contract), contract_type: contract.kind }
  return dialect === "python" ? described : {
    "@type": TokenData.wireTypes[contract.kind],
    address: echoed(address),
    ...Object.fromEntries(
      Object.entries(described).map(([name, value]) => [name, Predicate.isBigInt(value) ? value.toString() : value])
    )
  }
}

/** The get methods of the contracts without code in the sandbox (TEP-62, TEP-66, wallet v4). */
const getMethods: { readonly [Kind in Described["kind"]]: ReadonlySet<string> } = {
  wallet: new Set(["seqno", "get_subwallet_id", "get_public_key", "is_plugin_installed", "get_plugin_list"]),
  nft_collection: new Set(["get_collection_data", "get_nft_address_by_index", "get_nft_content", "royalty_params"]),
  nft_item: new Set(["get_nft_data"])
}

/** The wallet ID (subwallet ID) of every wallet contract, as returned by `getWalletInformation`. */
const walletId = 698_983_191

/** Exit codes of the virtual machine: success, unknown method, and no code to run. */
const exitCodes = { done: 0, noMethod: 11, noCode: -13 } as const

const ran = (exitCode: number, gasUsed: number, numbers: ReadonlyArray<number> = []) => ({
  "@type": "smc.runResult",
  gas_used: gasUsed,
  stack: numbers.map((number) => ["num", `0x${number.toString(16)}`]),
  exit_code: exitCode
})

/** Converts 85143, the numeric ID of the method `seqno`, to the name. Returns any other method unchanged. */
const named = (method: string | number): string | number => method === 85_143 ? "seqno" : method

/** Returns the result of a get method; `undefined` if the sandbox would have to run code to determine it. */
const runGetMethod = (contract: Contract | undefined, by: string | number) => {
  const method = named(by)
  if (!isDescribed(contract)) return ran(exitCodes.noCode, 0)
  if (typeof method === "number") return undefined
  if (!getMethods[contract.kind].has(method)) return ran(exitCodes.noMethod, 308)
  if (contract.kind !== "wallet") return undefined
  switch (method) {
    case "seqno":
      return ran(exitCodes.done, 549, [contract.seqno])
    case "get_subwallet_id":
      return ran(exitCodes.done, 549, [walletId])
    default:
      return undefined
  }
}

/** A response of the token chain without its envelope: the HTTP status, with a result or the text of an error. */
export type TokenAnswer =
  | { readonly dialect: Dialect; readonly status: 200; readonly result: unknown }
  | { readonly dialect: Dialect; readonly status: number; readonly error: string }

/** The state of the chain for a call. */
export interface View {
  readonly seed: Random.Seed
  readonly state: TokenState
  readonly dialect: Dialect
  readonly now: number
}

/** The state of the chain for a call with an address parameter, and the address. */
export interface Asked extends View {
  /** The address as the caller sent it. */
  readonly address: string
  readonly parsed: TokenData.Parsed
  readonly params: unknown
  readonly contract: Contract | undefined
  /** The balance in nanotons and the latest transaction, if the virtual machine is loaded. */
  readonly ledger?: AccountLedger
}

/** The balance of an account in nanotons, and its latest transaction. */
export interface AccountLedger {
  readonly balance: bigint
  readonly last: { readonly lt: bigint; readonly hash: Uint8Array } | undefined
}

/** Makes the response with the result of a method. */
export const ok = ({ dialect }: View, result: unknown): TokenAnswer => ({ dialect, status: 200, result })

/** Returns the token data of {@link Asked.contract}. */
export const tokenData = (asked: Asked): TokenAnswer => {
  const { address, contract, dialect } = asked
  return isToken(contract)
    ? ok(asked, describe(dialect, address, contract))
    : { dialect, status: 409, error: "Smart contract is not Jetton or NFT" }
}

const pack = ({ dialect, parsed }: Asked): string =>
  TokenData.format(parsed, {
    bounceable: parsed.form !== "non-bounceable",
    urlSafe: dialect === "cpp",
    testOnly: parsed.testOnly
  })

const unpack = ({ address, dialect, parsed }: Asked): string => {
  if (dialect === "cpp") return TokenData.formatRaw(parsed).toUpperCase()
  return parsed.form === "raw" ? address : TokenData.formatRaw(parsed)
}

const formatBalance = ({ contract, ledger }: Asked): string => {
  if (ledger !== undefined) return ledger.balance.toString()
  if (contract === undefined) return "0"
  return isToken(contract) ? "50000000" : contract.balance.toString()
}

const accountState = ({ contract }: Asked): string =>
  contract === undefined || contract.kind === "account" ? "uninitialized" : "active"

/** Returns the latest masterchain block. There is a new block every five seconds. */
export const masterchainBlock = ({ now, seed }: View) => {
  const seqno = Math.max(1, Math.floor((now - 1_573_822_385_000) / 5_000))
  return {
    "@type": "ton.blockIdExt",
    workchain: -1,
    shard: "-9223372036854775808",
    seqno,
    root_hash: base64(seed, `tokens/block/${seqno}/root`, 32),
    file_hash: base64(seed, `tokens/block/${seqno}/file`, 32)
  }
}

const noHash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/** Encodes the ID of an account's latest transaction. An account without transactions has an ID of zeros. */
export const transactionId = (last: AccountLedger["last"]) => ({
  "@type": "internal.transactionId",
  lt: last === undefined ? "0" : last.lt.toString(),
  hash: last === undefined ? noHash : btoa(String.fromCharCode(...last.hash))
})

const lastTransaction = ({ ledger }: Asked) => transactionId(ledger?.last)

/** The result of `getAddressInformation`. */
export interface AccountInformation {
  readonly balance: string
  readonly code: string
  readonly data: string
  readonly last_transaction_id: ReturnType<typeof transactionId>
  readonly block_id: ReturnType<typeof masterchainBlock>
  readonly frozen_hash: string
  readonly sync_utime: number
  readonly state: string
}

const information = (asked: Asked): AccountInformation & { readonly "@type": string } => {
  const { contract, now, parsed, seed } = asked
  return {
    "@type": "raw.fullAccountState",
    balance: formatBalance(asked),
    code: contract === undefined ? "" : base64(seed, `code/${contract.kind}`, 96),
    data: contract === undefined ? "" : base64(seed, `data/${parsed.hash}`, 48),
    last_transaction_id: lastTransaction(asked),
    block_id: masterchainBlock(asked),
    frozen_hash: "",
    sync_utime: Math.floor(now / 1_000),
    state: accountState(asked)
  }
}

/** The members of a wallet contract in `getWalletInformation`. */
export interface WalletMembers {
  readonly wallet_type: string
  readonly seqno: number
  readonly wallet_id?: number
}

const walletMembers = ({ contract }: Asked): WalletMembers | undefined =>
  contract?.kind === "wallet" ? { wallet_type: "wallet v4 r2", seqno: contract.seqno, wallet_id: walletId } : undefined

/** Encodes the result of `getWalletInformation`. */
export const walletInformation = (
  asked: Asked,
  state: string = accountState(asked),
  wallet: WalletMembers | undefined = walletMembers(asked)
) => ({
  wallet: wallet !== undefined,
  balance: formatBalance(asked),
  account_state: state,
  ...wallet,
  last_transaction_id: lastTransaction(asked)
})

/** Encodes the result of `getExtendedAddressInformation` from that of `getAddressInformation`. */
export const extendedInformation = (
  { parsed }: Asked,
  { balance, block_id, code, data, frozen_hash, last_transaction_id, state, sync_utime }: AccountInformation,
  wallet: WalletMembers | undefined
) => ({
  "@type": "fullAccountState",
  address: { "@type": "accountAddress", account_address: TokenData.format(parsed) },
  balance,
  extra_currencies: [],
  last_transaction_id,
  block_id,
  sync_utime,
  account_state: state !== "active"
    ? { "@type": "uninited.accountState", frozen_hash }
    : wallet?.wallet_type === "wallet v4 r2"
    ? { "@type": "wallet.v4.accountState", wallet_id: String(wallet.wallet_id), seqno: wallet.seqno }
    : { "@type": "raw.accountState", code, data, frozen_hash },
  revision: wallet?.wallet_type === "wallet v4 r2" ? 2 : 0
})

/** The name of a method of the token chain's HTTP API. */
export type Method = (TokenRpcOperation | TokenSendOperation)["name"]

const getMethod = (asked: Asked): TokenAnswer => {
  const { dialect, params } = asked
  const method = Predicate.hasProperty(params, "method") ? params.method : undefined
  const result = Predicate.isString(method) || Predicate.isNumber(method)
    ? runGetMethod(asked.contract, method)
    : undefined
  return result === undefined
    ? { dialect, status: 500, error: `the sandbox has no code for this contract, so it cannot serve ${String(method)}` }
    : ok(asked, result)
}

const always = (result: (asked: Asked) => unknown) => (asked: Asked): TokenAnswer => ok(asked, result(asked))

/** Methods with an address parameter. */
const addressMethods: { readonly [Name in Method]?: (asked: Asked) => TokenAnswer } = {
  getTokenData: tokenData,
  packAddress: always(pack),
  unpackAddress: always(unpack),
  detectAddress: always(({ parsed }) => TokenData.detect(parsed)),
  getAddressBalance: always(formatBalance),
  getAddressState: always(accountState),
  getAddressInformation: always(information),
  getExtendedAddressInformation: always((asked) =>
    extendedInformation(asked, information(asked), walletMembers(asked))
  ),
  getWalletInformation: always((asked) => walletInformation(asked)),
  runGetMethod: getMethod
}

const masterchainInfo = (view: View): TokenAnswer =>
  ok(view, {
    "@type": "blocks.masterchainInfo",
    last: masterchainBlock(view),
    state_root_hash: base64(view.seed, `tokens/state/${masterchainBlock(view).seqno}`, 32),
    init: {
      "@type": "ton.blockIdExt",
      workchain: -1,
      shard: "0",
      seqno: 0,
      root_hash: "F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=",
      file_hash: "XplPz01CXAps5qeSWUtxcyBfdAo5zVb1N979KLSKD24="
    }
  })

const unknownMethod = ({ dialect }: View, method: Method): TokenAnswer => {
  const reason = `the sandbox does not support ${method}`
  return dialect === "cpp"
    ? { dialect, status: 404, error: `Not Found: ${reason}` }
    : { dialect, status: 422, error: `Unknown method: ${reason}` }
}

const badAddress = ({ dialect }: View): TokenAnswer =>
  dialect === "cpp"
    ? { dialect, status: 422, error: "failed to parse address" }
    : { dialect, status: 416, error: "Incorrect address" }

/** Makes the view for a call without an address. {@link Asked} is the view for a call with an address. */
export const makeView = (seed: Random.Seed, state: TokenState, now: number): View => ({
  seed,
  state,
  dialect: state.dialect,
  now
})

/**
 * The params that a method reads besides the address. All history is stored, so `archival` is served without a
 * distinction.
 */
const readParams: { readonly [Name in Method]?: ReadonlyArray<string> } = {
  estimateFee: ["body", "init_code", "init_data", "ignore_chksig"],
  getTransactions: ["limit", "lt", "hash", "to_lt", "archival"],
  runGetMethod: ["method", "stack"]
}

/**
 * Decodes the address in a call's params. Returns the error response if the address is invalid, or if the sandbox does
 * not support one of the params.
 */
export const parseAsked = (view: View, method: Method, params: unknown): Result.Result<Asked, TokenAnswer> => {
  const read = new Set(["address", ...readParams[method] ?? []])
  const unread = Predicate.isObject(params) ? Object.keys(params).filter((name) => !read.has(name)) : []
  if (unread.length > 0 && method !== "runGetMethodStd") {
    const { dialect } = view
    const reason = StrictDecoder.formatUnread(unread, method).replace(": ", "")
    return Result.fail({ dialect, status: 422, error: reason })
  }
  const address = Predicate.hasProperty(params, "address") && Predicate.isString(params.address) ? params.address : ""
  return Result.match(TokenData.parse(address), {
    onFailure: () => Result.fail(badAddress(view)),
    onSuccess: (parsed) => {
      const found = view.state.contracts.get(accountKey(parsed))
      const dialect = found?.dialect ?? view.dialect
      return Result.succeed({ ...view, dialect, address, parsed, params, contract: found?.contract })
    }
  })
}

/**
 * Serves a method from the stored data of the contracts, without running code.
 *
 * If this data is not sufficient for the method, returns an error with the reason.
 */
export const answerCall = (view: View, method: Method, params: unknown): TokenAnswer => {
  if (method === "getMasterchainInfo") return masterchainInfo(view)
  const answerAddress = addressMethods[method]
  return answerAddress === undefined
    ? unknownMethod(view, method)
    : Result.getOrElse(Result.map(parseAsked(view, method, params), answerAddress), (wrong) => wrong)
}

/** Returns the JSON members that servers of the C++ family add to every response body. */
const extra = ({ dialect }: TokenAnswer, now: number): object =>
  dialect === "cpp" ? { "@extra": `${Math.floor(now / 1_000)}.000:0:0.004` } : {}

/** Encodes the response body of a REST call. */
export const rest = (answer: TokenAnswer, now: number, members: object = {}): UpstreamResponse.UpstreamResponse => {
  const body = "result" in answer
    ? { ok: true, result: answer.result }
    : { ok: false, error: answer.error, code: answer.status }
  const text = Json.stringify({ ...body, ...extra(answer, now), ...members })
  return UpstreamResponse.json("token-chain", answer.status, text)
}

/**
 * Encodes the response body of a JSON-RPC call. The Python family adds the ID, always as a string; the C++ family omits
 * it.
 */
export const rpc = (answer: TokenAnswer, now: number, id: string): UpstreamResponse.UpstreamResponse =>
  rest(answer, now, answer.dialect === "python" ? { id, jsonrpc: "2.0" } : {})

/**
 * Methods about balance and transactions. The virtual machine serves them for all contracts, even those without code.
 */
const ledger: ReadonlySet<Method> = new Set(["getAddressBalance", "getTransactions"])

/** Methods without an address that need the virtual machine: about messages, and about the network's configuration. */
const locating: ReadonlySet<Method> = new Set([
  "getConfigAll",
  "getConfigParam",
  "tryLocateResultTx",
  "tryLocateSourceTx",
  "tryLocateTx"
])

/** Methods that always need the virtual machine, because they run a contract's code or return its results. */
const running: ReadonlySet<Method> = new Set([
  "estimateFee",
  "getAddressInformation",
  "getTransactions",
  "runGetMethod",
  "runGetMethodStd"
])

/**
 * Methods that are served from the contracts' initial data until the virtual machine is loaded. After that, the virtual
 * machine serves them.
 */
const following: ReadonlySet<Method> = new Set([
  "getAddressBalance",
  "getAddressState",
  "getExtendedAddressInformation",
  "getTokenData",
  "getWalletInformation"
])

/**
 * Makes the function that serves the token chain's methods. The virtual machine is loaded when the first call needs it.
 */
export const make = Effect.fnUntraced(function*(seed: Random.Seed, state: Ref.Ref<TokenState>) {
  const isLoaded = yield* Ref.make(false)
  const scope = yield* Effect.scope
  const machine = yield* Effect.cached(Effect.gen(function*() {
    const methods = yield* Effect.promise(() => import("./TokenMachine.ts"))
    const made: TokenMachine.TokenMachine = yield* Scope.provide(methods.make(state), scope)
    yield* Ref.set(isLoaded, true)
    return { machine: made, methods }
  }))

  return Effect.fnUntraced(function*(method: Method, params: unknown) {
    const view = makeView(seed, yield* Ref.get(state), yield* Clock.currentTimeMillis)
    const described = () => answerCall(view, method, params)
    if (method.startsWith("sendBoc")) {
      const { machine: loaded, methods } = yield* machine
      return yield* methods.send(loaded, view, method, params)
    }
    const needsCode = running.has(method)
    if (locating.has(method)) {
      const { machine: loaded, methods } = yield* machine
      const answer = methods.viewMethods[method]
      return answer === undefined ? described() : yield* answer(loaded, view, params)
    }
    if (!needsCode && !(following.has(method) && (yield* Ref.get(isLoaded)))) return described()
    const asked = parseAsked(view, method, params)
    if (Result.isFailure(asked)) return asked.failure
    const isData = isDescribed(asked.success.contract) && !ledger.has(method)
    const answerAddress = addressMethods[method]
    if (isData && !(yield* Ref.get(isLoaded))) return described()
    const { machine: loaded, methods } = yield* machine
    if (isData && answerAddress !== undefined) {
      return answerAddress({ ...asked.success, ledger: yield* loaded.account(asked.success.parsed) })
    }
    const answer = methods.addressMethods[method] ?? methods.followingMethods[method]
    return answer === undefined ? described() : yield* answer(loaded, asked.success)
  }) satisfies (method: Method, params: unknown) => Effect.Effect<TokenAnswer>
})

/** Serves the token chain's methods. */
export type Answering = Effect.Success<ReturnType<typeof make>>
