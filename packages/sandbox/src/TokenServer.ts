/** The token chain's HTTP API v2 as either family of its servers answers it. */
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/TokenOperations"
import * as TonAddress from "@trigate/domain/TonAddress"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import type { Contract, Dialect } from "./TokenContracts.ts"
import { accountKey, base64, describe } from "./TokenContracts.ts"
import * as GetMethods from "./TokenGetMethods.ts"

/** What is deployed on the token chain, and which family of servers is asked about it. */
export interface TokenState {
  /** By raw address, in lower case. */
  readonly contracts: ReadonlyMap<string, { readonly contract: Contract; readonly dialect: Dialect }>
  /** The family that answers about all other addresses. */
  readonly dialect: Dialect
  /** Metadata documents by URI; no server fetches them, whoever reads a contract has to. */
  readonly documents: ReadonlyMap<string, unknown>
}

/** An answer before its envelope: the HTTP status, and a result or the error's text. */
export type TokenAnswer =
  | { readonly dialect: Dialect; readonly status: 200; readonly result: unknown }
  | { readonly dialect: Dialect; readonly status: number; readonly error: string }

interface View {
  readonly seed: Seed
  readonly state: TokenState
  readonly dialect: Dialect
  readonly now: number
}

interface Asked extends View {
  /** As it was written. */
  readonly address: string
  readonly parsed: TonAddress.Parsed
  readonly params: unknown
  readonly contract: Contract | undefined
}

const ok = ({ dialect }: View, result: unknown): TokenAnswer => ({ dialect, status: 200, result })

const tokenData = (asked: Asked): TokenAnswer => {
  const { address, contract, dialect, seed } = asked
  return contract === undefined || contract.kind === "wallet"
    ? { dialect, status: 409, error: "Smart contract is not Jetton or NFT" }
    : ok(asked, describe(seed, dialect, address, contract))
}

const pack = (asked: Asked): TokenAnswer => {
  const { dialect, parsed } = asked
  return ok(
    asked,
    TonAddress.format(parsed, {
      bounceable: parsed.form !== "non-bounceable",
      urlSafe: dialect === "cpp",
      testOnly: parsed.testOnly
    })
  )
}

const unpack = (asked: Asked): TokenAnswer => {
  const { address, dialect, parsed } = asked
  if (dialect === "cpp") return ok(asked, TonAddress.formatRaw(parsed).toUpperCase())
  return ok(asked, parsed.form === "raw" ? address : TonAddress.formatRaw(parsed))
}

const givenTypes = {
  raw: "raw_form",
  bounceable: "friendly_bounceable",
  "non-bounceable": "friendly_non_bounceable"
} as const

const detect = (asked: Asked): TokenAnswer => {
  const { parsed } = asked
  const forms = (bounceable: boolean) => {
    const form = { bounceable, testOnly: parsed.testOnly }
    return {
      b64: TonAddress.format(parsed, { ...form, urlSafe: false }),
      b64url: TonAddress.format(parsed, { ...form, urlSafe: true })
    }
  }
  return ok(asked, {
    raw_form: TonAddress.formatRaw(parsed),
    bounceable: forms(true),
    non_bounceable: forms(false),
    given_type: givenTypes[parsed.form],
    test_only: parsed.testOnly
  })
}

const balanceOf = ({ contract }: Asked): string => {
  if (contract === undefined) return "0"
  return contract.kind === "wallet" ? contract.balance.toString() : "50000000"
}

const stateOf = ({ contract }: Asked): string => contract === undefined ? "uninitialized" : "active"

const masterchainBlock = ({ now, seed }: View) => {
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

const lastTransaction = ({ contract, parsed, seed }: Asked) => ({
  "@type": "internal.transactionId",
  lt: contract === undefined ? "0" : `${48_756_545_000_001 + Random.below(Random.series(seed, parsed.hash), 0, 1e9)}`,
  hash: contract === undefined ? "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" : base64(seed, `tx/${parsed.hash}`, 32)
})

const information = (asked: Asked): TokenAnswer => {
  const { contract, now, parsed, seed } = asked
  return ok(asked, {
    "@type": "raw.fullAccountState",
    balance: balanceOf(asked),
    code: contract === undefined ? "" : base64(seed, `code/${contract.kind}`, 96),
    data: contract === undefined ? "" : base64(seed, `data/${parsed.hash}`, 48),
    last_transaction_id: lastTransaction(asked),
    block_id: masterchainBlock(asked),
    frozen_hash: "",
    sync_utime: Math.floor(now / 1_000),
    state: stateOf(asked)
  })
}

const walletInformation = (asked: Asked): TokenAnswer => {
  const { contract } = asked
  const isWallet = contract?.kind === "wallet"
  return ok(asked, {
    wallet: isWallet,
    balance: balanceOf(asked),
    account_state: stateOf(asked),
    ...(isWallet ? { wallet_type: "wallet v4 r2", seqno: contract.seqno, wallet_id: GetMethods.walletId } : {}),
    last_transaction_id: lastTransaction(asked)
  })
}

type Method = (TokenRpcOperation | TokenSendOperation)["name"]

const getMethod = (asked: Asked): TokenAnswer => {
  const { dialect, params } = asked
  const method = Predicate.hasProperty(params, "method") ? params.method : undefined
  const result = Predicate.isString(method) || Predicate.isNumber(method)
    ? GetMethods.result(asked.contract, method)
    : undefined
  return result === undefined
    ? { dialect, status: 500, error: `the sandbox runs no contract code: ${String(method)} has no answer` }
    : ok(asked, result)
}

/** Methods that take an address and answer about it. */
const addressMethods: { readonly [Name in Method]?: (asked: Asked) => TokenAnswer } = {
  getTokenData: tokenData,
  packAddress: pack,
  unpackAddress: unpack,
  detectAddress: detect,
  getAddressBalance: (asked) => ok(asked, balanceOf(asked)),
  getAddressState: (asked) => ok(asked, stateOf(asked)),
  getAddressInformation: information,
  getWalletInformation: walletInformation,
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
  const reason = `the sandbox has no answer to ${method}`
  return dialect === "cpp"
    ? { dialect, status: 404, error: `Not Found: ${reason}` }
    : { dialect, status: 422, error: `Unknown method: ${reason}` }
}

const badAddress = ({ dialect }: View): TokenAnswer =>
  dialect === "cpp"
    ? { dialect, status: 422, error: "failed to parse address" }
    : { dialect, status: 416, error: "Incorrect address" }

/**
 * Answers a method at the instant `now`; `params` is the named object that the caller sent.
 *
 * Methods that this chain has no data for are answered as both families answer a method that they do not know, and why.
 */
export const answer = (seed: Seed, state: TokenState, method: Method, params: unknown, now: number): TokenAnswer => {
  const view: View = { seed, state, dialect: state.dialect, now }
  if (method === "getMasterchainInfo") return masterchainInfo(view)
  const answerAddress = addressMethods[method]
  if (answerAddress === undefined) return unknownMethod(view, method)
  const address = Predicate.hasProperty(params, "address") && Predicate.isString(params.address) ? params.address : ""
  return Result.match(TonAddress.parse(address), {
    onFailure: () => badAddress(view),
    onSuccess: (parsed) => {
      const found = state.contracts.get(accountKey(parsed))
      return answerAddress({
        ...view,
        dialect: found?.dialect ?? state.dialect,
        address,
        parsed,
        params,
        contract: found?.contract
      })
    }
  })
}
