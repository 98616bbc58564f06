/** A model of an account's history, and a node that serves it with faults. */
import type { Cell, Message } from "@ton/core"
import { Address, beginCell, Dictionary, storeTransaction } from "@ton/core"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import type { TokenBackend } from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/** A transaction of the model, as a server stores it. */
export interface Row {
  readonly lt: bigint
  readonly hash: string
  readonly data: string
}

export const raw = (digit: string): string => `0:${digit.repeat(64)}`

/** What a transaction received. */
export interface Received {
  readonly source?: string
  readonly body: Cell
  readonly aborted?: boolean
  readonly bounced?: boolean
}

const emptyUpdate = { oldHash: Buffer.alloc(32), newHash: Buffer.alloc(32) }

const inMessage = (account: string, { body, bounced = false, source }: Received): Message => ({
  info: source === undefined
    ? { type: "external-in", dest: Address.parseRaw(account), importFee: 0n }
    : {
      type: "internal",
      ihrDisabled: true,
      bounce: true,
      bounced,
      src: Address.parseRaw(source),
      dest: Address.parseRaw(account),
      value: { coins: 1n },
      ihrFee: 0n,
      forwardFee: 0n,
      createdLt: 1n,
      createdAt: 1
    },
  body
})

/** Appends a transaction to a history. */
export const append = (history: Array<Row>, account: string, received: Received, step = 1_000_000n): Row => {
  const last = history[history.length - 1]
  const lt = (last?.lt ?? 47_000_000_000_000n) + step
  const cell = beginCell().store(storeTransaction({
    address: BigInt(`0x${account.slice(2)}`),
    lt,
    prevTransactionHash: last === undefined ? 0n : BigInt(`0x${last.hash}`),
    prevTransactionLt: last?.lt ?? 0n,
    now: 1_760_000_000 + history.length,
    outMessagesCount: 0,
    oldStatus: "active",
    endStatus: "active",
    inMessage: inMessage(account, received),
    outMessages: Dictionary.empty(Dictionary.Keys.Uint(15)),
    totalFees: { coins: 1n },
    stateUpdate: emptyUpdate,
    description: {
      type: "generic",
      creditFirst: false,
      computePhase: { type: "skipped", reason: "no-state" },
      aborted: received.aborted ?? false,
      destroyed: false
    },
    raw: beginCell().endCell(),
    hash: () => Buffer.alloc(32)
  })).endCell()
  const row = { lt, hash: cell.hash().toString("hex"), data: cell.toBoc().toString("base64") }
  history.push(row)
  return row
}

/** `internal_transfer` of TEP-74. */
export const internalTransfer = (amount: bigint, sender: string, forward = 0n): Cell =>
  beginCell().storeUint(0x178d4519, 32).storeUint(7, 64).storeCoins(amount).storeAddress(Address.parseRaw(sender))
    .storeAddress(null).storeCoins(forward).storeBit(0).endCell()

/** A notification, which any contract can send. */
export const notification = (amount: bigint, sender: string): Cell =>
  beginCell().storeUint(0x7362d09c, 32).storeUint(7, 64).storeCoins(amount).storeAddress(Address.parseRaw(sender))
    .storeBit(0).endCell()

/** What the node does to a page, besides serving it. */
export type PageFault = "none" | "429" | "500" | "hole" | "doubled" | "lag" | "empty" | "foreign"

/** A node over histories by raw address. `faultOf` chooses what happens to each request. */
export const makeNode = (options: {
  readonly histories: ReadonlyMap<string, ReadonlyArray<Row>>
  readonly wallets?: ReadonlyMap<string, string>
  readonly faultOf?: (request: number) => PageFault
  readonly mostRows?: number
}) => {
  const { faultOf = () => "none", histories, mostRows = 100, wallets = new Map<string, string>() } = options
  const requests: Array<string> = []
  // of another account, newer than all others
  const foreign = append([], raw("9"), { body: internalTransfer(1n, raw("9")) }, 1_000_000_000_000n)
  const answer = (status: number, body: object) => ({ status, body: Json.stringify(body) })
  /** The response to a method. */
  const respond = (method: string, asked: unknown): { readonly status: number; readonly body: string } => {
    const member = (name: string): unknown => Predicate.hasProperty(asked, name) ? asked[name] : undefined
    const address = Result.getOrThrow(Result.map(TonAddress.parse(String(member("address"))), TonAddress.formatRaw))
    requests.push(method)
    const fault = faultOf(requests.length)
    if (fault === "429") return answer(429, { ok: false, result: "Ratelimit exceed", code: 429 })
    if (fault === "500") return answer(500, { ok: false, error: "LITE_SERVER_NETWORK", code: 500 })
    if (method === "runGetMethod") {
      const wallet = wallets.get(address)
      return answer(200, {
        ok: true,
        result: wallet === undefined ? { exit_code: 11, stack: [] } : {
          exit_code: 0,
          stack: [["cell", {
            bytes: beginCell().storeAddress(Address.parseRaw(wallet)).endCell().toBoc().toString("base64")
          }]]
        }
      })
    }
    const history = histories.get(address) ?? []
    const from = member("lt") === undefined ? undefined : BigInt(String(member("lt")))
    if (from !== undefined && !history.some(({ lt }) => lt === from)) {
      const error = "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time"
      return answer(500, { ok: false, error, code: 500 })
    }
    const newest = fault === "lag" && from === undefined ? history.slice(0, -2) : history
    const page = newest.filter(({ lt }) => from === undefined || lt <= from).toReversed()
      .slice(0, Math.min(mostRows, Number(member("limit"))))
    const faulty = fault === "hole"
      ? page.filter((_, index) => index !== Math.floor(page.length / 2))
      : fault === "doubled"
      ? page.flatMap((row) => [row, row])
      : fault === "empty" && from !== undefined
      ? []
      : fault === "foreign"
      ? [foreign, ...page.slice(1)]
      : page
    return answer(200, {
      ok: true,
      result: faulty.map(({ data, hash, lt }) => ({
        "@type": "raw.transaction",
        data,
        transaction_id: { lt: String(lt), hash: Buffer.from(hash, "hex").toString("base64") }
      }))
    })
  }
  const read: TokenBackend["read"] = ({ operation, params }) => {
    const { body, status } = respond(operation.name, params.valueOrUndefined)
    return Effect.succeed(UpstreamResponse.json("token-chain", status, body))
  }
  return { read, respond, requests }
}
