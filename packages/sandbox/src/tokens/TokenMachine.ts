/**
 * The token chain's virtual machine, and the methods of the HTTP API v2 that run contract code.
 *
 * Loading the machine takes about half a second and 128 MiB. `TokenServer` loads it when the first call runs code.
 */
import { Address, beginCell, Cell, Dictionary, loadMessage, storeMessage, storeTransaction } from "@ton/core"
import type { Message, Transaction, TupleItem } from "@ton/core"
import { sha256_sync as sha256 } from "@ton/crypto"
import { Blockchain, createEmptyShardAccount, createShardAccount, GetMethodError } from "@ton/sandbox"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { countCells, isBoundedMessage } from "@trigate/tokens/unstable/transactions/TransactionCell"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as CallerTurns from "../internal/CallerTurns.ts"
import { minterCode, walletCode } from "./JettonCode.ts"
import * as TokenExecutor from "./TokenExecutor.ts"
import * as TokenServer from "./TokenServer.ts"
import { type Asked, type Content, type Contract, ok, type TokenAnswer, type TokenState } from "./TokenServer.ts"

/** Code and data of a contract. */
export interface Cells {
  readonly code: Cell
  readonly data: Cell
}

const minter = Cell.fromBase64(minterCode)
const wallet = Cell.fromBase64(walletCode)

/**
 * Prefixes that TEP-64 defines for a dictionary of attributes, for a URI, and for an attribute's text in a chain of
 * cells.
 */
const prefixes = { onchain: 0, offchain: 1, snake: 0 } as const

const attribute = (text: string): Cell => beginCell().storeUint(prefixes.snake, 8).storeStringTail(text).endCell()

/** Makes a metadata cell. The keys of its dictionary are the SHA-256 hashes of the attribute names. */
const contentCell = (content: Content): Cell => {
  if (content.type === "offchain") {
    return beginCell().storeUint(prefixes.offchain, 8).storeStringTail(content.data).endCell()
  }
  const attributes = Dictionary.empty(Dictionary.Keys.Buffer(32), Dictionary.Values.Cell())
  for (const [name, text] of Object.entries(content.data)) attributes.set(sha256(name), attribute(text))
  return beginCell().storeUint(prefixes.onchain, 8).storeDict(attributes).endCell()
}

/** Returns the cells of a contract; `undefined` for a contract that the sandbox stores without code. */
export const contractCells = (contract: Contract): Cells | undefined => {
  switch (contract.kind) {
    case "jetton_master":
      return {
        code: minter,
        data: beginCell()
          .storeCoins(contract.supply)
          .storeBit(contract.mintable)
          .storeAddress(contract.admin === undefined ? null : Address.parse(contract.admin))
          .storeRef(contentCell(contract.content))
          .storeRef(wallet)
          .endCell()
      }
    case "jetton_wallet":
      return {
        code: wallet,
        data: beginCell()
          .storeCoins(contract.balance)
          .storeAddress(Address.parse(contract.owner))
          .storeAddress(Address.parse(contract.jetton))
          .storeRef(wallet)
          .endCell()
      }
    default:
      return undefined
  }
}

/**
 * Decodes the cells of a jetton contract. Returns `undefined` for the cells of any other contract. `seeded` is the
 * contract's initial data, from which the metadata of a jetton master is copied.
 */
export const readJetton = ({ code, data }: Cells, seeded: Contract | undefined): Contract | undefined => {
  const slice = data.beginParse()
  if (code.equals(wallet)) {
    return {
      kind: "jetton_wallet",
      balance: slice.loadCoins(),
      owner: slice.loadAddress().toString(),
      jetton: slice.loadAddress().toString()
    }
  }
  return seeded?.kind === "jetton_master" ? { ...seeded, supply: slice.loadCoins() } : undefined
}

/** The current state of an account. */
export interface AccountView {
  /** The balance of the account, in nanotons. */
  readonly balance: bigint
  readonly state: "active" | "uninitialized" | "frozen"
  readonly code: Cell | undefined
  readonly data: Cell | undefined
  /** The latest transaction of the account; `undefined` if there are no transactions. */
  readonly last: { readonly lt: bigint; readonly hash: Uint8Array } | undefined
}

/** The refusal of a message, with the server's error text. */
export interface MachineRefusal {
  readonly refused: string
}

/**
 * Maximum number of transactions stored for an account. Older transactions are dropped, as on a node without an
 * archive.
 */
const keptTransactions = 1_000

/** The chain's limits of an external message: 65 535 bytes, here in base64, and cells 512 levels deep. */
const maxCharacters = 87_380
const maxDepth = 512

/** Maximum number of cells of an external message, and of the entries and cells of a stack. The chain accepts 8 192. */
const maxCells = 1_024

/** Maximum number of transactions that one message to the sandbox's token chain causes. Further messages are dropped. */
const maxTransactions = 256

/** The exit code of a get method of an account without code. */
const noCode = -13

/** Maximum gas of a get method, which the virtual machine uses in about 0.2 seconds. */
const maxGetGas = 300_000n

/**
 * The initial balance of a contract for which the state contains no balance, in nanotons. The contract pays fees from
 * it. `getAddressBalance` returns this amount even before the virtual machine is loaded.
 */
const seedBalance = 50_000_000n

const toAddress = (account: TonAddress.Account): Address => Address.parseRaw(TonAddress.formatRaw(account))

const stateNames = { active: "active", uninit: "uninitialized", frozen: "frozen" } as const

const refusal = (cause: unknown): MachineRefusal => ({
  refused: Predicate.isString(cause)
    ? cause
    : Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message)
    ? cause.message
    : "not a message"
})

/**
 * Makes the virtual machine over the contracts of a state. If a test adds, replaces or removes a contract later, the
 * change applies to the next call.
 */
export const make = Effect.fnUntraced(function*(state: Ref.Ref<TokenState>) {
  const { executor, limited } = yield* TokenExecutor.make()
  const blockchain = yield* Effect.promise(() => Blockchain.create({ config: "slim", executor }))
  const inTurn = yield* CallerTurns.make(1)
  const reading = yield* Semaphore.make(1)
  const placed = new Map<string, Contract>()
  const transactions = new Map<string, Array<Transaction>>()

  const place = (key: string, contract: Contract): Promise<void> => {
    const address = Address.parseRaw(key)
    const cells = contractCells(contract)
    placed.set(key, contract)
    transactions.delete(key)
    if (cells !== undefined) {
      return blockchain.setShardAccount(address, createShardAccount({ address, ...cells, balance: seedBalance }))
    }
    const account = createEmptyShardAccount(address)
    const balance = contract.kind === "wallet" || contract.kind === "account" ? contract.balance : seedBalance
    return blockchain.setShardAccount(address, {
      ...account,
      account: {
        addr: address,
        storageStats: { used: { cells: 0n, bits: 0n }, storageExtra: null, lastPaid: 0, duePayment: null },
        storage: { lastTransLt: 0n, balance: { coins: balance }, state: { type: "uninit" } }
      }
    })
  }

  const follow = Effect.fnUntraced(function*() {
    const { contracts } = yield* Ref.get(state)
    for (const [key, { contract }] of contracts) {
      if (placed.get(key) !== contract) yield* Effect.promise(() => place(key, contract))
    }
    for (const key of placed.keys()) {
      if (contracts.has(key)) continue
      placed.delete(key)
      transactions.delete(key)
      const address = Address.parseRaw(key)
      yield* Effect.promise(() => blockchain.setShardAccount(address, createEmptyShardAccount(address)))
    }
    blockchain.now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  })

  /** Reads the state, which follows the contracts first. It does not wait for executions. */
  const read = <A>(call: Effect.Effect<A>): Effect.Effect<A> =>
    reading.withPermit(Effect.uninterruptible(Effect.andThen(follow(), call)))

  /** Runs one execution at a time, in turns of the callers, because the virtual machine has one state. */
  const execute = <A>(call: Effect.Effect<A, MachineRefusal>): Effect.Effect<A | MachineRefusal> =>
    inTurn(Effect.uninterruptible(limited(Effect.andThen(read(Effect.void), call)))).pipe(
      Effect.catch((cause) => Effect.succeed("refused" in cause ? cause : refusal(cause)))
    )

  const record = (sent: ReadonlyArray<Transaction>): void => {
    for (const transaction of sent) {
      const key = `0:${transaction.address.toString(16).padStart(64, "0")}`
      const known = transactions.get(key) ?? []
      known.unshift(transaction)
      transactions.set(key, known.slice(0, keptTransactions))
    }
  }

  return {
    /** Returns an account. An account that was never written is uninitialized and empty. */
    account: (account: TonAddress.Account): Effect.Effect<AccountView> =>
      read(Effect.gen(function*() {
        const contract = yield* Effect.promise(() => blockchain.getContract(toAddress(account)))
        const [last] = transactions.get(TonAddress.formatRaw(account)) ?? []
        const state = contract.account.account?.storage.state
        const init = state?.type === "active" ? state.state : undefined
        return {
          balance: contract.balance,
          state: stateNames[state?.type ?? "uninit"],
          code: init?.code ?? undefined,
          data: init?.data ?? undefined,
          last: last === undefined ? undefined : { lt: last.lt, hash: last.hash() }
        }
      })),

    /** Runs a get method of a contract. The method is selected by its name or its numeric ID. */
    runGetMethod: (
      account: TonAddress.Account,
      method: string | number,
      stack: ReadonlyArray<TupleItem>
    ) =>
      execute(Effect.gen(function*() {
        const contract = yield* Effect.promise(() => blockchain.getContract(toAddress(account)))
        if (contract.accountState?.type !== "active") return { exitCode: noCode, gasUsed: 0n, stack: [] }
        const ran = yield* Effect.tryPromise({
          try: () =>
            // a method that ends with an exit code has completed, and the exit code is part of its result
            contract.get(method, [...stack], { gasLimit: maxGetGas }).catch((cause: unknown) =>
              cause instanceof GetMethodError
                ? { exitCode: cause.exitCode, gasUsed: cause.gasUsed, stack: [] }
                : Promise.reject(cause)
            ),
          catch: refusal
        })
        return { exitCode: ran.exitCode, gasUsed: ran.gasUsed, stack: ran.stack }
      })),

    /** Executes an external message and all resulting messages. Returns the hash of the message's cell. */
    send: (boc: string): Effect.Effect<{ readonly hash: Uint8Array } | MachineRefusal> =>
      Effect.gen(function*() {
        if (boc.length > maxCharacters) return yield* Effect.fail(refusal("external message is too large"))
        if (countCells(boc) > maxCells) return yield* Effect.fail(refusal("external message has too many cells"))
        const cell = yield* Effect.try({ try: () => Cell.fromBase64(boc), catch: refusal })
        if (cell.depth() > maxDepth) return yield* Effect.fail(refusal("external message is too deep"))
        const isBounded = yield* Effect.try({ try: () => isBoundedMessage(cell), catch: refusal })
        if (!isBounded) return yield* Effect.fail(refusal("external message has too many cells"))
        const message = yield* Effect.try({ try: () => loadMessage(cell.beginParse()), catch: refusal })
        if (message.info.type !== "external-in") return yield* Effect.fail(refusal("not an external message"))
        return yield* execute(Effect.gen(function*() {
          // a queue of its own, so that messages beyond the limits are dropped instead of sent with the next message
          const sent = yield* Effect.tryPromise({
            try: () => blockchain.sendMessageIter(message, { allowParallel: true }),
            catch: refusal
          })
          const next = Effect.tryPromise({ try: () => sent.next(), catch: refusal })
          const first = yield* next
          if (first.done !== true) record([first.value])
          for (let count = 1; count < maxTransactions; count++) {
            yield* Effect.yieldNow
            // an internal message that cannot be executed is dropped, because the external message was accepted
            const following = yield* Effect.option(next)
            if (Option.isNone(following)) continue
            if (following.value.done === true) break
            record([following.value.value])
          }
          return { hash: cell.hash() }
        }))
      }).pipe(Effect.catch(Effect.succeed)),

    /** Returns the transactions of an account, newest first. */
    transactions: (account: TonAddress.Account): Effect.Effect<ReadonlyArray<Transaction>> =>
      read(Effect.sync(() => transactions.get(TonAddress.formatRaw(account)) ?? []))
  }
})

/** The virtual machine. */
export type TokenMachine = Effect.Success<ReturnType<typeof make>>

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

const boc = (cell: Cell): string => cell.toBoc().toString("base64")

const refused = ({ dialect }: TokenServer.View, error: string, status = 500): TokenAnswer => ({
  dialect,
  status,
  error
})

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

const isNumber = (type: string): boolean => type === "num" || type === "int"

const readEntry = ([type, value]: readonly [string, string | number]): TupleItem | undefined => {
  // an integer of the virtual machine has 257 bits
  if (isNumber(type)) {
    return String(value).length > 80 ? undefined : { type: "int", value: BigInt(value) }
  }
  if (/slice$/iu.test(type)) return { type: "slice", cell: Cell.fromBase64(String(value)) }
  return /cell$/iu.test(type) ? { type: "cell", cell: Cell.fromBase64(String(value)) } : undefined
}

/**
 * Converts a stack for the virtual machine; `undefined` if the sandbox does not support the type of an entry, or if the
 * stack is too large.
 */
const readStack = (stack: unknown): ReadonlyArray<TupleItem> | undefined => {
  const entries = Option.getOrElse(decodeStack(stack), () => [["", ""] as const])
  const cells = entries.reduce((sum, [type, value]) => sum + 1 + (isNumber(type) ? 0 : countCells(String(value))), 0)
  if (cells > maxCells) return undefined
  const items = entries.map(readEntry)
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
  const ran = yield* machine.runGetMethod(parsed, name, items)
  if ("refused" in ran) return refused(asked, `LITE_SERVER_UNKNOWN: cannot run get method: ${ran.refused}`)
  const { exitCode, gasUsed, stack: result } = ran
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
  if (Predicate.isNumber(value)) return Number.isSafeInteger(value) ? BigInt(value) : undefined
  return Predicate.isString(value) && /^\d{1,20}$/u.test(value) ? BigInt(value) : undefined
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
  // others run between the transactions, whose messages can be large
  const bodies = yield* Effect.forEach(
    page,
    (transaction) => Effect.map(Effect.yieldNow, () => transactionBody(asked, transaction))
  )
  return ok(asked, bodies)
})

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
    state: account.state
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
    return ok(asked, (yield* machine.account(asked.parsed)).state)
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
  if ("refused" in sent) {
    return refused(view, `LITE_SERVER_UNKNOWN: cannot apply external message to current state : ${sent.refused}`)
  }
  return ok(view, method === "sendBoc" ? { "@type": "ok" } : { "@type": "raw.extMessageInfo", hash: base64(sent.hash) })
})
