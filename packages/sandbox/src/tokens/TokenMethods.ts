/** The methods of the HTTP API v2 that run contract code: for accounts, get methods, messages and transactions. */
import type { Cell, Message, Transaction, TupleItem } from "@ton/core"
import { beginCell, Cell as Cells, storeMessage, storeTransaction } from "@ton/core"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { readJetton } from "./ContractCells.ts"
import type { AccountView, TokenMachine } from "./TokenMachine.ts"
import type { Asked, TokenAnswer } from "./TokenServer.ts"
import * as TokenServer from "./TokenServer.ts"

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

const boc = (cell: Cell): string => cell.toBoc().toString("base64")

const ok = ({ dialect }: Asked, result: unknown): TokenAnswer => ({ dialect, status: 200, result })

const refused = ({ dialect }: Asked, error: string, status = 500): TokenAnswer => ({ dialect, status, error })

const noHash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

const transactionId = (last: AccountView["last"]) => ({
  "@type": "internal.transactionId",
  lt: last === undefined ? "0" : last.lt.toString(),
  hash: last === undefined ? noHash : base64(last.hash)
})

/** Encodes a stack entry inside a tuple. */
const element = (item: TupleItem): object => {
  switch (item.type) {
    case "int":
      return {
        "@type": "tvm.stackEntryNumber",
        number: { "@type": "tvm.numberDecimal", number: item.value.toString() }
      }
    case "cell":
    case "slice":
    case "builder":
      return { "@type": "tvm.stackEntryCell", cell: { "@type": "tvm.cell", bytes: boc(item.cell) } }
    case "tuple":
      return { "@type": "tvm.stackEntryTuple", tuple: { "@type": "tvm.tuple", elements: item.items.map(element) } }
    default:
      return { "@type": "tvm.stackEntryList", list: { "@type": "tvm.list", elements: [] } }
  }
}

/** Encodes a stack entry as the token chain's servers do. */
const entry = (item: TupleItem): readonly [type: string, value: unknown] => {
  switch (item.type) {
    case "int":
      return ["num", item.value < 0n ? `-0x${(-item.value).toString(16)}` : `0x${item.value.toString(16)}`]
    case "cell":
    case "slice":
    case "builder":
      return ["cell", { bytes: boc(item.cell) }]
    case "tuple":
      return ["tuple", { "@type": "tvm.tuple", elements: item.items.map(element) }]
    default:
      return ["list", { "@type": "tvm.list", elements: [] }]
  }
}

/**
 * Decodes a stack in the clients' format: pairs of a type and a value. A value is a number or a bag of cells in base64.
 */
const decodeStack = Schema.decodeUnknownOption(
  Schema.Array(Schema.Tuple([Schema.String, Schema.Union([Schema.String, Schema.Int])]))
)

const readEntry = ([type, value]: readonly [string, string | number]): TupleItem | undefined => {
  if (type === "num" || type === "int") return { type: "int", value: BigInt(value) }
  if (/slice$/iu.test(type)) return { type: "slice", cell: Cells.fromBase64(String(value)) }
  return /cell$/iu.test(type) ? { type: "cell", cell: Cells.fromBase64(String(value)) } : undefined
}

/** Converts a stack for the virtual machine; `undefined` if the sandbox does not support the type of an entry. */
const readStack = (stack: unknown): ReadonlyArray<TupleItem> | undefined => {
  const items = Option.getOrElse(decodeStack(stack), () => [["", ""] as const]).map(readEntry)
  return items.every((item) => item !== undefined) ? items : undefined
}

const runGetMethod = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const { params, parsed } = asked
  const method = Predicate.hasProperty(params, "method") ? params.method : undefined
  const stack = Effect.try({
    try: () => readStack(Predicate.hasProperty(params, "stack") ? params.stack : []),
    catch: () => undefined
  })
  const items = yield* Effect.orElseSucceed(stack, () => undefined)
  if (items === undefined || !(Predicate.isString(method) || Predicate.isNumber(method))) {
    return refused(asked, "the sandbox supports only num, tvm.Cell and tvm.Slice in a stack", 422)
  }
  const name = Predicate.isString(method) && /^-?\d+$/u.test(method) ? Number(method) : method
  const { exitCode, gasUsed, stack: result } = yield* machine.runGetMethod(parsed, name, items)
  const { last } = yield* machine.account(parsed)
  return ok(asked, {
    "@type": "smc.runResult",
    gas_used: Number(gasUsed),
    stack: result.map(entry),
    exit_code: exitCode,
    last_transaction_id: transactionId(last),
    block_id: TokenServer.masterchainBlock(asked)
  })
})

const friendly = (account: { toString(): string } | null | undefined): string => account?.toString() ?? ""

const messageBody = (message: Message) => {
  const { info } = message
  const isInternal = info.type === "internal"
  return {
    "@type": "raw.message",
    hash: base64(beginCell().store(storeMessage(message)).endCell().hash()),
    source: friendly(info.src),
    destination: friendly(info.dest),
    value: isInternal ? info.value.coins.toString() : "0",
    extra_currencies: [],
    fwd_fee: isInternal ? info.forwardFee.toString() : "0",
    ihr_fee: isInternal ? info.ihrFee.toString() : "0",
    created_lt: info.type === "external-in" ? "0" : info.createdLt.toString(),
    body_hash: base64(message.body.hash()),
    msg_data: { "@type": "msg.dataRaw", body: boc(message.body), init_state: "" },
    message: boc(message.body)
  }
}

const storageFee = ({ description }: Transaction): bigint =>
  description.type === "generic" ? description.storagePhase?.storageFeesCollected ?? 0n : 0n

const transactionBody = ({ parsed }: Asked, transaction: Transaction) => {
  const fee = transaction.totalFees.coins
  return {
    "@type": "raw.transaction",
    address: { "@type": "accountAddress", account_address: TonAddress.format(parsed) },
    utime: transaction.now,
    data: boc(beginCell().store(storeTransaction(transaction)).endCell()),
    transaction_id: transactionId({ lt: transaction.lt, hash: transaction.hash() }),
    fee: fee.toString(),
    storage_fee: storageFee(transaction).toString(),
    other_fee: (fee - storageFee(transaction)).toString(),
    ...(transaction.inMessage == null ? {} : { in_msg: messageBody(transaction.inMessage) }),
    out_msgs: transaction.outMessages.values().map(messageBody)
  }
}

/** Parses a count or a logical time, which can be a JSON number or a string of digits. */
const integer = (params: unknown, name: string): bigint | undefined => {
  const value = Predicate.hasProperty(params, name) ? params[name] : undefined
  if (Predicate.isBigInt(value)) return value
  return Predicate.isNumber(value) || (Predicate.isString(value) && /^\d+$/u.test(value)) ? BigInt(value) : undefined
}

/** Returns whether a text is a hash, in hex or in either alphabet of base64. */
const isHash = (text: string, hash: Uint8Array): boolean =>
  /^[0-9a-f]{64}$/iu.test(text)
    ? text.toLowerCase() === Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")
    : text.replaceAll("-", "+").replaceAll("_", "/").replace(/=$/u, "") === base64(hash).replace(/=$/u, "")

/** Default and maximum number of transactions in a page. */
const pageSizes = { usual: 10, most: 100 } as const

/** Returns transactions in descending order from `lt` (inclusive) to `to_lt` (exclusive), as the servers do. */
const getTransactions = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const { params, parsed } = asked
  const from = integer(params, "lt")
  const to = integer(params, "to_lt") ?? 0n
  const limit = Math.min(Number(integer(params, "limit") ?? pageSizes.usual), pageSizes.most)
  const known = yield* machine.transactions(parsed)
  const hash = Predicate.hasProperty(params, "hash") ? params.hash : undefined
  const isNamed = (transaction: Transaction) =>
    transaction.lt === from && (!Predicate.isString(hash) || isHash(hash, transaction.hash()))
  if (from !== undefined && from > 0n && !known.some(isNamed)) {
    return refused(asked, "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time")
  }
  const page = known.filter(({ lt }) => (from === undefined || from === 0n || lt <= from) && lt > to).slice(0, limit)
  return ok(asked, page.map((transaction) => transactionBody(asked, transaction)))
})

const stateNames = { active: "active", uninitialized: "uninitialized", frozen: "frozen" } as const

const getAddressInformation = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const account = yield* machine.account(asked.parsed)
  return ok(asked, {
    "@type": "raw.fullAccountState",
    balance: account.balance.toString(),
    extra_currencies: [],
    code: account.code === undefined ? "" : boc(account.code),
    data: account.data === undefined ? "" : boc(account.data),
    last_transaction_id: transactionId(account.last),
    block_id: TokenServer.masterchainBlock(asked),
    frozen_hash: "",
    sync_utime: Math.floor(asked.now / 1_000),
    state: stateNames[account.state]
  })
})

/** Returns the current data of a token contract. */
const getTokenData = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const { code, data } = yield* machine.account(asked.parsed)
  const contract = code === undefined || data === undefined ? undefined : readJetton({ code, data }, asked.contract)
  return TokenServer.tokenData(contract === undefined ? asked : { ...asked, contract })
})

type MachineMethod = (machine: TokenMachine, asked: Asked) => Effect.Effect<TokenAnswer>

/** The methods that have an address parameter and need the virtual machine. */
export const addressMethods: { readonly [name: string]: MachineMethod } = {
  getAddressInformation,
  getTransactions,
  runGetMethod,
  runGetMethodStd: (_machine, asked) =>
    Effect.succeed(refused(asked, "Unknown method: the sandbox supports only runGetMethod", 422))
}

/**
 * The methods that are served from the contracts' initial data until the virtual machine is loaded. After that, the
 * virtual machine serves them.
 */
export const followingMethods: { readonly [name: string]: MachineMethod } = {
  getAddressBalance: Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
    return ok(asked, (yield* machine.account(asked.parsed)).balance.toString())
  }),
  getAddressState: Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
    return ok(asked, stateNames[(yield* machine.account(asked.parsed)).state])
  }),
  getTokenData
}

/**
 * Executes a message. The three methods that send a message differ only in whether their responses contain the
 * message's hash.
 */
export const send = Effect.fnUntraced(function*(
  machine: TokenMachine,
  view: TokenServer.View,
  method: string,
  params: unknown
) {
  const sent = yield* machine.send(
    Predicate.hasProperty(params, "boc") && Predicate.isString(params.boc) ? params.boc : ""
  )
  const { dialect } = view
  if ("refused" in sent) {
    const error = `LITE_SERVER_UNKNOWN: cannot apply external message to current state : ${sent.refused}`
    return { dialect, status: 500, error } satisfies TokenAnswer
  }
  const result = method === "sendBoc"
    ? { "@type": "ok" }
    : { "@type": "raw.extMessageInfo", hash: base64(sent.hash) }
  return { dialect, status: 200, result } satisfies TokenAnswer
})
