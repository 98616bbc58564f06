/**
 * Decodes a transaction from its cell, which `getTransactions` returns in `data`.
 *
 * Ignores all other members of the returned transaction. The hash of the cell identifies the transaction, so the result
 * cannot differ from the chain's record.
 */
import * as Core from "@ton/core"
import type * as TokenData from "@trigate/domain/tokens/TokenData"
import * as Result from "effect/Result"

/** The opcode `internal_transfer` of TEP-74, with which a jetton wallet or a master credits a jetton wallet. */
const internalTransfer = 0x178d4519

const hex = (value: bigint): string => value.toString(16).padStart(64, "0")

const formatAddress = (address: Core.Address | Core.ExternalAddress | null | undefined): string | null =>
  address instanceof Core.Address ? address.toRawString() : null

const formatOpcode = (body: Core.Cell): string | undefined => {
  const slice = body.beginParse()
  return slice.remainingBits < 32 ? undefined : `0x${slice.loadUint(32).toString(16).padStart(8, "0")}`
}

/**
 * Returns the text of a message body with opcode 0, including the text in the cells to which the body refers. Returns
 * `undefined` for any other body.
 */
const parseComment = (body: Core.Cell): string | undefined => {
  const slice = body.beginParse(true)
  if (slice.remainingBits < 32 || slice.loadUint(32) !== 0 || slice.remainingBits % 8 !== 0) return undefined
  return Result.getOrUndefined(Result.try(() => slice.loadStringTail()))
}

const encodeCell = (cell: Core.Cell): string => cell.toBoc().toString("base64")

/**
 * Maximum number of cells that decoding a transaction or a message may visit. A cell that several cells refer to counts
 * once for each visit: in a dictionary whose subtrees are shared, n cells have 2^n entries.
 *
 * The chain accepts at most 8 192 cells in a message, and 1 024 cells in its dictionaries.
 */
export const maxCells = 32_768

/** Subtracts the cells that a visit needs from the cells that are left. The result is negative if they are too few. */
type Count = (cell: Core.Cell, left: number) => number

const sumOver = (cells: ReadonlyArray<Core.Cell | null>, left: number, count: Count): number => {
  let rest = left
  for (const cell of cells) {
    if (rest < 0) return rest
    if (cell !== null) rest = count(cell, rest)
  }
  return rest
}

/** Counts the cells of a tree, each as often as a cell refers to it. */
const countTree: Count = (cell, left) => sumOver(cell.refs, left - 1, countTree)

/** Counts the distinct cells of a tree, because a bag of cells contains each of them once. */
const countDistinct: Count = (root, left) => {
  const known = new Set<Core.Cell>()
  const count: Count = (cell, rest) => {
    if (known.has(cell)) return rest
    known.add(cell)
    return sumOver(cell.refs, rest - 1, count)
  }
  return count(root, left)
}

/** Counts the nodes of a dictionary. A fork has two references, and the values that matter here at most one. */
const countDictionary = (weight: number, leaf: Count): Count => {
  const count: Count = (node, left) =>
    node.refs.length < 2 ? leaf(node, left - weight) : sumOver(node.refs, left - weight, count)
  return count
}

/** A currency or a library costs more than other cells, because its key is decoded bit by bit. */
const countEntries = countDictionary(16, (_, left) => left)

/** Counts the libraries, after the state's depth and its flags. */
const countInit = (init: Core.Slice, left: number): number => {
  if (init.loadBit()) init.skip(5)
  if (init.loadBit()) init.skip(2)
  init.loadMaybeRef()
  init.loadMaybeRef()
  return sumOver([init.loadMaybeRef()], left, countEntries)
}

/** Skips the header of a message and returns the dictionary of its currencies. */
const skipHeader = (message: Core.Slice): Core.Cell | null => {
  if (message.loadBit()) {
    const isOutbound = message.loadBit()
    message.loadAddressAny()
    message.loadAddressAny()
    if (isOutbound) message.skip(96)
    else message.loadCoins()
    return null
  }
  message.skip(3)
  message.loadAddressAny()
  message.loadAddressAny()
  message.loadCoins()
  const currencies = message.loadMaybeRef()
  message.loadCoins()
  message.loadCoins()
  message.skip(96)
  return currencies
}

const countMessage: Count = (cell, left) => {
  const message = cell.beginParse()
  let rest = sumOver([skipHeader(message)], left - 1, countEntries)
  if (rest >= 0 && message.loadBit()) {
    rest = countInit(message.loadBit() ? message.loadRef().beginParse() : message, rest)
  }
  if (rest < 0) return rest
  return message.loadBit()
    ? countDistinct(message.loadRef(), rest)
    : sumOver(Array.from({ length: message.remainingRefs }, () => message.loadRef()), rest, countDistinct)
}

const countMessages = countDictionary(1, (leaf, left) => sumOver(leaf.refs, left, countMessage))

const countTransaction: Count = (cell, left) => {
  const [messages, ...others] = cell.refs
  if (messages === undefined) return left
  const slice = messages.beginParse()
  const received = sumOver([slice.loadMaybeRef()], left, countMessage)
  return sumOver(others, sumOver([slice.loadMaybeRef()], received, countMessages), countTree)
}

/** Reads the number of cells from the header of a bag of cells in base64, without decoding it. */
export const countCells = (boc: string): number => {
  const bytes = Buffer.from(boc, "base64")
  return bytes.subarray(6, 6 + ((bytes[4] ?? 0) & 7)).reduce((count, byte) => count * 256 + byte, 0)
}

/** Returns whether a message can be decoded within {@link maxCells}. Throws if the cell is not a message. */
export const isBoundedMessage = (cell: Core.Cell): boolean => countMessage(cell, maxCells) >= 0

/** Returns whether decoding a transaction visits at most `most` cells. Throws if the cell is not a transaction. */
export const isBoundedTransaction = (cell: Core.Cell, most: number): boolean => countTransaction(cell, most) >= 0

/** Counts a stack entry. A tuple's entries are counted as often as tuples contain them. */
const countEntry = (entry: Core.Slice, left: number): number => {
  if (entry.loadUint(8) !== 7) {
    return sumOver(Array.from({ length: entry.remainingRefs }, () => entry.loadRef()), left - 1, countDistinct)
  }
  let node = entry
  let rest = left - 1
  const length = entry.loadUint(16)
  for (let index = length; index > 1 && rest >= 0; index--) {
    const next = node.loadRef().beginParse()
    rest = countEntry(node.loadRef().beginParse(), rest)
    node = next
  }
  if (length === 0 || rest < 0) return rest
  return countEntry(length === 1 ? node.loadRef().beginParse() : node, rest)
}

/** Returns whether decoding a stack visits at most `most` cells. Throws if the cell is not a stack. */
export const isBoundedStack = (cell: Core.Cell, most: number): boolean => {
  let stack = cell.beginParse()
  let left = most
  for (let size = stack.loadUint(24); size > 0 && left >= 0; size--) {
    const next = stack.loadRef().beginParse()
    left = countEntry(stack, left)
    stack = next
  }
  return left >= 0
}

const readMessage = ({ body, info }: Core.Message): TokenData.TransactionMessage => {
  const opcode = body.isExotic ? undefined : formatOpcode(body)
  const comment = parseComment(body)
  return {
    kind: info.type === "internal" ? "internal" : info.type,
    source: formatAddress(info.src),
    destination: formatAddress(info.dest),
    value: info.type === "internal" ? info.value.coins.toString() : "0",
    bounced: info.type === "internal" && info.bounced,
    ...(opcode === undefined ? {} : { opcode }),
    ...(comment === undefined ? {} : { comment }),
    body: encodeCell(body)
  }
}

/**
 * Returns whether a transaction was aborted. A transaction whose description has no member `aborted`, such as a storage
 * payment, cannot abort.
 */
const isAborted = ({ description }: Core.Transaction): boolean => "aborted" in description && description.aborted

/**
 * Decodes a transaction from a bag of cells in base64. If the cells do not contain a transaction of `account`, fails
 * with a description of the mistake.
 */
export const read = (data: string, account: TokenData.Account): Result.Result<TokenData.AccountTransaction, string> =>
  Result.flatMap(
    Result.try({
      try: () => {
        const cell = Core.Cell.fromBase64(data)
        if (countTransaction(cell, maxCells) < 0) return undefined
        const transaction = Core.loadTransaction(cell.beginParse())
        return {
          account: `${account.workchain}:${hex(transaction.address)}`,
          lt: transaction.lt.toString(),
          hash: cell.hash().toString("hex"),
          previous: { lt: transaction.prevTransactionLt.toString(), hash: hex(transaction.prevTransactionHash) },
          time: transaction.now,
          aborted: isAborted(transaction),
          fee: transaction.totalFees.coins.toString(),
          inMessage: transaction.inMessage == null ? null : readMessage(transaction.inMessage),
          outMessages: transaction.outMessages.values().map(readMessage)
        }
      },
      catch: () => "Expected a transaction's bag of cells in base64"
    }),
    (transaction) =>
      transaction === undefined
        ? Result.fail(`Expected a transaction that expands to at most ${maxCells} cells`)
        : transaction.account === `${account.workchain}:${account.hash}`
        ? Result.succeed(transaction)
        : Result.fail(
          `Expected a transaction of ${account.workchain}:${account.hash}, got one of ${transaction.account}`
        )
  )

/** The accounts of a jetton transfer. */
export interface JettonAccounts {
  readonly owner: string
  readonly master: string
  readonly wallet: string
}

/**
 * Returns the amount that a transaction of a jetton wallet credits to the wallet's owner; `undefined` if the
 * transaction credits nothing.
 *
 * The wallet's own code refuses an `internal_transfer` from an unknown sender, which aborts the transaction. So if the
 * master derived the wallet, each `internal_transfer` that is not aborted is a genuine transfer. A bounced message is
 * ignored, because it only returns an amount that was sent before.
 */
export const readTransfer = (
  { aborted, hash, inMessage, lt, time }: TokenData.AccountTransaction,
  accounts: JettonAccounts
): TokenData.JettonTransfer | undefined => {
  if (aborted || inMessage === null || inMessage.kind !== "internal" || inMessage.bounced) return undefined
  if (inMessage.opcode !== `0x${internalTransfer.toString(16)}`) return undefined
  const slice = Core.Cell.fromBase64(inMessage.body).beginParse()
  return Result.getOrUndefined(Result.try(() => {
    slice.skip(32)
    const queryId = slice.loadUintBig(64)
    const amount = slice.loadCoins()
    const sender = slice.loadMaybeAddress()
    slice.loadMaybeAddress()
    const forwardAmount = slice.loadCoins()
    const payload = slice.remainingBits > 0 && slice.loadBit() && slice.remainingRefs > 0
      ? slice.loadRef()
      : slice.asCell()
    const comment = parseComment(payload)
    const isEmpty = payload.bits.length === 0 && payload.refs.length === 0
    return {
      lt,
      hash,
      time,
      ...accounts,
      sender: formatAddress(sender),
      amount: amount.toString(),
      queryId: queryId.toString(),
      forwardAmount: forwardAmount.toString(),
      ...(comment === undefined ? {} : { comment }),
      ...(isEmpty ? {} : { forwardPayload: encodeCell(payload) })
    }
  }))
}

/** Encodes an address as the slice that `get_wallet_address` accepts: a bag of cells in base64. */
export const encodeAddress = (account: TokenData.Account): string =>
  encodeCell(Core.beginCell().storeAddress(Core.Address.parseRaw(`${account.workchain}:${account.hash}`)).endCell())

/**
 * Parses an address from a bag of cells in base64. Returns it in raw form; `undefined` if the cells do not contain an
 * address.
 */
export const readAddress = (data: string): string | undefined =>
  Result.getOrUndefined(Result.try(() => Core.Cell.fromBase64(data).beginParse().loadAddress().toRawString()))
