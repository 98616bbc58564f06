/**
 * The token chain's virtual machine, and the methods of the HTTP API v2 that run contract code.
 *
 * Loading the machine takes about half a second and 128 MiB. `TokenServer` loads it when the first call runs code.
 */
import { Address, beginCell, Cell, Dictionary, loadMessage, storeMessage, storeTransaction } from "@ton/core"
import type { Message, StateInit, Transaction, TupleItem } from "@ton/core"
import { sha256_sync as sha256 } from "@ton/crypto"
import { Blockchain, createEmptyShardAccount, createShardAccount, GetMethodError } from "@ton/sandbox"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { countCells, isBoundedMessage } from "@trigate/tokens/unstable/transactions/TransactionCell"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as CallerTurns from "../internal/CallerTurns.ts"
import { minterCode, walletCode } from "./JettonCode.ts"
import * as TokenExecutor from "./TokenExecutor.ts"
import * as TokenServer from "./TokenServer.ts"
import { type AccountLedger, type Asked, type Content, type Contract, ok, transactionId } from "./TokenServer.ts"
import type { TokenAnswer, TokenState, View, WalletMembers } from "./TokenServer.ts"

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
export interface AccountView extends AccountLedger {
  readonly state: "active" | "uninitialized" | "frozen"
  readonly code: Cell | undefined
  readonly data: Cell | undefined
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

    /** Executes an external message, returns its transaction, and discards all changes. */
    estimate: (account: TonAddress.Account, body: Cell, init: StateInit | undefined, ignoreChksig: boolean) =>
      execute(Effect.gen(function*() {
        const dest = toAddress(account)
        const message: Message = {
          info: { type: "external-in", dest, importFee: 0n },
          ...(init === undefined ? {} : { init }),
          body
        }
        const before = blockchain.snapshot()
        const ran = Effect.tryPromise({
          try: () =>
            blockchain.getContract(dest).then((contract) =>
              contract.receiveMessage(message, {
                ignoreChksig,
                ...(blockchain.now === undefined ? {} : { now: blockchain.now })
              })
            ),
          catch: refusal
        })
        return { transaction: yield* Effect.ensuring(ran, Effect.promise(() => blockchain.loadFrom(before))) }
      })),

    /** Returns the network's configuration: a dictionary of cells by parameter number. */
    config: Effect.sync(() => blockchain.config),

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

const transactionBody = ({ parsed }: Pick<Asked, "parsed">, transaction: Transaction) => {
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

/** Wallet contracts by the hash of their code: the type, and the bits before the sequence number. */
const walletTypes: ReadonlyMap<string, { readonly type: string; readonly skipped: number; readonly hasId: boolean }> =
  new Map([
    ["fe9530d3243853083ef2ef0b4c2908c0abf6fa1c31ea243aacaa5bf8c7d753f1", {
      type: "wallet v2 r2",
      skipped: 0,
      hasId: false
    }],
    ["b61041a58a7980b946e8fb9e198e3c904d24799ffa36574ea4251c41a566f581", {
      type: "wallet v3 r1",
      skipped: 0,
      hasId: true
    }],
    ["84dafa449f98a6987789ba232358072bc0f76dc4524002a5d0918b9a75d2d599", {
      type: "wallet v3 r2",
      skipped: 0,
      hasId: true
    }],
    ["feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0", {
      type: "wallet v4 r2",
      skipped: 0,
      hasId: true
    }],
    ["20834b7b72b112147e1b2fb457b84e74d1a30f04f737d4f62a668e9552d2b72f", {
      type: "wallet v5 r1",
      skipped: 1,
      hasId: true
    }]
  ])

/** Returns the members of a wallet contract; `undefined` for any other account. */
const readWallet = ({ code, data }: AccountView): WalletMembers | undefined => {
  const known = code === undefined ? undefined : walletTypes.get(code.hash().toString("hex"))
  if (known === undefined || data === undefined) return undefined
  const slice = data.beginParse().skip(known.skipped)
  const seqno = slice.loadUint(32)
  return { wallet_type: known.type, seqno, ...(known.hasId ? { wallet_id: slice.loadUint(32) } : {}) }
}

const information = (asked: Asked, account: AccountView) => ({
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

const getAddressInformation = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  return ok(asked, information(asked, yield* machine.account(asked.parsed)))
})

const readParam = (params: unknown, name: string): unknown =>
  Predicate.hasProperty(params, name) ? params[name] : undefined

const parseCell = (text: unknown): Cell | undefined =>
  Predicate.isString(text) && text !== "" ? Cell.fromBase64(text) : undefined

/** Returns the fees of an external message, which is executed without an effect. */
const estimateFee = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const { params, parsed } = asked
  const [text, code, data] = ["body", "init_code", "init_data"].map((name) => readParam(params, name))
  if ([text, code, data].some((each) => Predicate.isString(each) && each.length > maxCharacters)) {
    return refused(asked, "external message is too large", 422)
  }
  const cells = yield* Effect.option(Effect.try({
    try: () => ({ body: parseCell(text) ?? new Cell(), code: parseCell(code), data: parseCell(data) }),
    catch: () => undefined
  }))
  if (Option.isNone(cells)) return refused(asked, "failed to parse the cells of the message", 422)
  const { body, ...init } = cells.value
  const hasInit = init.code !== undefined || init.data !== undefined
  const estimated = yield* machine.estimate(
    parsed,
    body,
    hasInit ? { code: init.code ?? null, data: init.data ?? null } : undefined,
    readParam(params, "ignore_chksig") !== false
  )
  if ("refused" in estimated) {
    return refused(asked, `LITE_SERVER_UNKNOWN: cannot estimate fees: ${estimated.refused}`)
  }
  const { transaction } = estimated
  const { description, totalFees } = transaction
  const storage = storageFee(transaction)
  const isGeneric = description.type === "generic"
  const gas = isGeneric && description.computePhase.type === "vm" ? description.computePhase.gasFees : 0n
  const action = isGeneric ? description.actionPhase?.totalActionFees ?? 0n : 0n
  const forward = isGeneric ? description.actionPhase?.totalFwdFees ?? 0n : 0n
  return ok(asked, {
    "@type": "query.fees",
    source_fees: {
      "@type": "fees",
      in_fwd_fee: Number(totalFees.coins - storage - gas - action),
      storage_fee: Number(storage),
      gas_fee: Number(gas),
      fwd_fee: Number(forward)
    },
    destination_fees: []
  })
})

type ViewMethod = (machine: TokenMachine, view: View, params: unknown) => Effect.Effect<TokenAnswer>

const badParams = (view: View): TokenAnswer => refused(view, "failed to parse address", 422)

/** Finds the transaction of an account that a message connects with another account. */
const locate = (isSource: boolean): ViewMethod => (machine, view, params) =>
  Effect.gen(function*() {
    const [source, destination] = ["source", "destination"].map((name) => {
      const text = readParam(params, name)
      return Predicate.isString(text) ? Option.getOrUndefined(Result.getSuccess(TonAddress.parse(text))) : undefined
    })
    if (source === undefined || destination === undefined) return badParams(view)
    const created = integer(params, "created_lt")
    const [from, to] = [TonAddress.formatRaw(source), TonAddress.formatRaw(destination)]
    const isNamed = ({ info }: Message) =>
      info.type === "internal" && info.createdLt === created && info.src.toRawString() === from &&
      info.dest.toRawString() === to
    const found = (yield* machine.transactions(isSource ? source : destination)).find(({ inMessage, outMessages }) =>
      isSource ? outMessages.values().some(isNamed) : inMessage != null && isNamed(inMessage)
    )
    return found === undefined
      ? refused(view, "transaction not found", 404)
      : ok(view, transactionBody({ parsed: isSource ? source : destination }, found))
  })

const configInfo = (view: View, cell: Cell): TokenAnswer =>
  ok(view, { "@type": "configInfo", config: { "@type": "tvm.cell", bytes: boc(cell) } })

/** The methods without an address that need the virtual machine. */
export const viewMethods: { readonly [name: string]: ViewMethod } = {
  getConfigAll: (machine, view) => Effect.map(machine.config, (config) => configInfo(view, config)),
  getConfigParam: (machine, view, params) =>
    Effect.map(machine.config, (config) => {
      const id = Number(integer(params, "config_id") ?? -1n)
      const cells = config.beginParse().loadDictDirect(Dictionary.Keys.Int(32), Dictionary.Values.Cell())
      const cell = cells.get(id)
      return cell === undefined
        ? refused(view, `LITE_SERVER_UNKNOWN: no config parameter ${id}`)
        : configInfo(view, cell)
    }),
  tryLocateTx: locate(false),
  tryLocateResultTx: locate(false),
  tryLocateSourceTx: locate(true)
}

/** Returns the current data of a token contract. */
const getTokenData = Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
  const { code, data } = yield* machine.account(asked.parsed)
  const contract = code === undefined || data === undefined ? undefined : readJetton({ code, data }, asked.contract)
  return TokenServer.tokenData(contract === undefined ? asked : { ...asked, contract })
})

type MachineMethod = (machine: TokenMachine, asked: Asked) => Effect.Effect<TokenAnswer>

/** The methods that have an address parameter and need the virtual machine. */
export const addressMethods: { readonly [name: string]: MachineMethod } = {
  estimateFee,
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
  getExtendedAddressInformation: Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
    const account = yield* machine.account(asked.parsed)
    return ok(asked, TokenServer.extendedInformation(asked, information(asked, account), readWallet(account)))
  }),
  getTokenData,
  getWalletInformation: Effect.fnUntraced(function*(machine: TokenMachine, asked: Asked) {
    const account = yield* machine.account(asked.parsed)
    const wallet = readWallet(account)
    return ok(
      asked,
      TokenServer.walletInformation({ ...asked, contract: undefined, ledger: account }, account.state, wallet)
    )
  })
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
