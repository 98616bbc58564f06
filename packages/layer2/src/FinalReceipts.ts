/**
 * Detects receipts that can no longer change and can therefore be cached indefinitely.
 *
 * A receipt can change until its block is final: a preconfirmation by the sequencer can be revised, a reorg can remove
 * the block until L1 has finalized it, and some chain families add fields to the receipt later. Most receipts are
 * requested only once, so finality is checked, with up to two block requests, only when a receipt is requested again.
 */
import { Hash as HashSchema, Quantity } from "@trigate/domain/encoding/Hex"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { CheckedRead } from "@trigate/domain/evm/EvmProtocol"
import { makeMethod } from "@trigate/domain/evm/EvmTypedCalls"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { isPreconfirmed } from "@trigate/domain/evm/Receipt"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import { cachedForGood } from "@trigate/domain/operations/Operation"
import type { CachePolicy, Request, Response } from "@trigate/domain/operations/Operation"
import * as SingleFlight from "@trigate/upstream/cache/SingleFlight"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** Reads a block through the same pipeline (limits, cache, retries) as the reads of callers. */
export type AskBlock = (call: CheckedRead) => Effect.Effect<RpcAnswer, CommonFailure>

/** Options of finality checks. */
export interface Options {
  /** `off` caches no receipts and requests no blocks. Default: `check`. */
  readonly finality?: "check" | "off"
  /** How long the finalized block, or a failure to read it, is cached. Default: 10 seconds. */
  readonly remember?: Duration.Input
}

/** Determines how long a receipt may be cached. */
export interface FinalReceipts {
  /**
   * Returns how long the receipt of `hash` may be cached. Returns `undefined`, without requesting a block, if the
   * receipt cannot be final.
   */
  readonly confirm: (hash: string, answer: RpcAnswer) => Effect.Effect<CachePolicy | undefined> | undefined
}

/**
 * Maximum number of transaction hashes in each of the two sets of recently requested receipts. If a hash is already in
 * a set, its receipt was requested before.
 */
const REMEMBERED = 4096

const Sealed = Schema.Struct({
  transactionHash: HashSchema,
  blockHash: HashSchema,
  blockNumber: Quantity,
  // zkSync's batch number, which is null until the batch is sealed
  l1BatchNumber: Schema.optionalKey(Schema.Unknown)
})
type Sealed = typeof Sealed.Type

const decode = Schema.decodeUnknownOption(Sealed)

/**
 * The operation that reads a block. Decodes only the members that the finality checks need, because other members
 * differ between chain families.
 */
const getBlockByNumber = {
  ...layer2Operations.getBlockByNumber,
  response: Schema.NullOr(Schema.Struct({ number: Quantity, hash: HashSchema }))
}
const blockOver = makeMethod(getBlockByNumber)

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const sealedIn = (hash: string, answer: RpcAnswer): Option.Option<Sealed> =>
  answer._tag === "Error" || answer.result.text === "null" ? Option.none() : Option.filter(
    decode(answer.result.valueOrUndefined),
    (receipt) => isSame(receipt.transactionHash, hash) && !isPreconfirmed(receipt) && receipt.l1BatchNumber !== null
  )

/** Makes the finality checks of one layer 2. Different layer 2s need separate checks. */
export const make = (askBlock: AskBlock, options: Options = {}): FinalReceipts => {
  if (options.finality === "off") return { confirm: () => undefined }
  const remember = Duration.toMillis(options.remember ?? "10 seconds")
  const asking = SingleFlight.make<bigint, never>()
  // the number of the highest finalized block so far, because finality never reverts
  let finalized = -1n
  let askAgainAt = 0

  const readBlock = blockOver("FinalReceipts", "layer2", (call) => askBlock({ ...call, surface: "gateway" }))
  // if a block request fails, it is unknown whether the receipt is final
  const block = (request: Request<typeof getBlockByNumber>): Effect.Effect<Response<typeof getBlockByNumber>> =>
    Effect.orElseSucceed(readBlock(request), () => null)

  const ask = Effect.gen(function*() {
    const found = yield* block({ block: "finalized" })
    askAgainAt = (yield* Clock.currentTimeMillis) + remember
    if (found !== null && found.number > finalized) finalized = found.number
    return finalized
  })

  const finalizedFor = Effect.fnUntraced(function*(number: bigint) {
    const now = yield* Clock.currentTimeMillis
    return number <= finalized || now < askAgainAt ? finalized : yield* asking.run({ key: "finalized", ask })
  })

  const check = Effect.fnUntraced(function*({ blockHash, blockNumber }: Sealed) {
    if (blockNumber > (yield* finalizedFor(blockNumber))) return undefined
    const found = yield* block({ block: blockNumber })
    return found !== null && found.number === blockNumber && isSame(found.hash, blockHash) ? cachedForGood : undefined
  })

  // most receipts are read once, so caching them is not worth two additional block requests. The older of the two sets
  // is dropped as a whole, because evicting single hashes would cost more
  let newer = new Set<number>()
  let older = new Set<number>()
  const isAskedAgain = (hash: string): boolean => {
    // 28 bits of the hash, because a small integer needs less memory than a string. If two hashes collide, the only
    // effect is two unnecessary requests
    const key = Number.parseInt(hash.slice(-7), 16)
    if (newer.has(key)) return true
    if (newer.size === REMEMBERED) {
      older = newer
      newer = new Set()
    }
    newer.add(key)
    return older.has(key)
  }

  return {
    confirm: (hash, answer) =>
      answer._tag === "Result" && answer.result.text !== "null" && isAskedAgain(hash)
        ? Option.match(sealedIn(hash, answer), { onNone: () => undefined, onSome: check })
        : undefined
  }
}
