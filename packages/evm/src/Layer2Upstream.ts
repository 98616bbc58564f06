/**
 * `Layer2` over the network: JSON-RPC by POST to a node's base URL. Receipts that can no longer change are cached.
 *
 * A receipt can change until its block is final: a preconfirmation by the sequencer can be revised, a reorg can remove
 * the block until L1 has finalized it, and some chain families add fields to the receipt later. Most receipts are
 * requested only once, so finality is checked, with up to two block requests, only when a receipt is requested again.
 */
import { addMillis, Hash as HashSchema, longAgo, monotonicTime, Quantity } from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import { type CheckedRead, makeMethod, type RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import { isPreconfirmed } from "@trigate/domain/evm/EvmResources"
import { getTransactionReceipt, layer2Operations, serving } from "@trigate/domain/evm/Layer2Operations"
import { cachedForGood, type CachePolicy, type Request, type Response } from "@trigate/domain/operations/Operation"
import * as SingleFlight from "@trigate/upstream/cache/ResponseCache"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportHttpClient from "@trigate/upstream/transport/HttpTransport"
import type { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as GatewayReads from "./EvmFeed.ts"
import * as EvmUpstream from "./EvmUpstream.ts"
import { Layer2, make as makeService } from "./Layer2.ts"

/** Reads a block through the same pipeline (limits, cache, retries) as the reads of callers. */
export type SendBlockRead = (call: CheckedRead) => Effect.Effect<RpcResponse, GatewayError.CommonFailure>

/** Options of finality checks. */
export interface FinalReceiptsOptions {
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
  readonly confirm: (hash: string, response: RpcResponse) => Effect.Effect<CachePolicy | undefined> | undefined
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

const sealedIn = (hash: string, response: RpcResponse): Option.Option<Sealed> =>
  response._tag === "Error" || response.result.text === "null" ? Option.none() : Option.filter(
    decode(response.result.valueOrUndefined),
    (receipt) => isSame(receipt.transactionHash, hash) && !isPreconfirmed(receipt) && receipt.l1BatchNumber !== null
  )

/** Makes the finality checks of one layer 2. Different layer 2s need separate checks. */
export const makeFinalReceipts = (sendBlockRead: SendBlockRead, options: FinalReceiptsOptions = {}): FinalReceipts => {
  if (options.finality === "off") return { confirm: () => undefined }
  const remember = Duration.toMillis(options.remember ?? "10 seconds")
  const finalizedReads = SingleFlight.makeSingleFlight<bigint, never>()
  // the number of the highest finalized block so far, because finality never reverts
  let finalized = -1n
  let retryAt = longAgo

  const readBlock = blockOver("FinalReceipts", "layer2", (call) => sendBlockRead({ ...call, surface: "gateway" }))
  // if a block request fails, it is unknown whether the receipt is final
  const block = (request: Request<typeof getBlockByNumber>): Effect.Effect<Response<typeof getBlockByNumber>> =>
    Effect.orElseSucceed(readBlock(request), () => null)

  const send = Effect.gen(function*() {
    const found = yield* block({ block: "finalized" })
    retryAt = addMillis(monotonicTime(yield* Clock.Clock), remember)
    if (found !== null && found.number > finalized) finalized = found.number
    return finalized
  })

  const finalizedFor = Effect.fnUntraced(function*(number: bigint) {
    const now = monotonicTime(yield* Clock.Clock)
    return number <= finalized || now < retryAt ? finalized : yield* finalizedReads.run({ key: "finalized", send })
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
  const isRequestedAgain = (hash: string): boolean => {
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
    confirm: (hash, response) =>
      response._tag === "Result" && response.result.text !== "null" && isRequestedAgain(hash)
        ? Option.match(sealedIn(hash, response), { onNone: () => undefined, onSome: check })
        : undefined
  }
}

export { Layer2 }

/** The upstream URLs of the layer 2, and the limits of its reads. */
export interface Addresses {
  /**
   * Base URLs with the endpoint key in the path, in order of preference. If the list is empty, calls fail with
   * `ChainNotConfigured`.
   */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Whether final receipts are cached. Caching requires additional block requests; see {@link FinalReceipts}. */
  readonly finality?: FinalReceiptsOptions
  /** The limits of log queries and filters. */
  readonly evm?: GatewayReads.Bounds
}

const notConfigured = () =>
  new GatewayError.ChainNotConfigured({ chain: "layer2", detail: "No upstream URL of a layer 2 is configured" })

const make = ({ addresses, evm, finality }: Addresses) => {
  const upstream = Upstream.make("layer2", addresses)
  const targets = Upstream.targets(upstream, "")
  const callTargets = () =>
    Arr.isReadonlyArrayNonEmpty(targets) ? Result.succeed(targets) : Result.fail(notConfigured())
  const nodes = EvmUpstream.make({
    upstream,
    targetsOf: callTargets,
    confirm: (read) => {
      const receipts = makeFinalReceipts(
        (call) => Effect.flatMap(Effect.fromResult(callTargets()), (found) => read(call, found)),
        finality
      )
      return ({ operation, request }, response) =>
        operation.name === getTransactionReceipt.name && Predicate.hasProperty(request, "hash") &&
          Predicate.isString(request.hash)
          ? receipts.confirm(request.hash, response)
          : undefined
    }
  })
  return Effect.flatMap(
    nodes,
    (backend) => GatewayReads.makeGatewayReads(backend, { ...evm, serving, label: upstream.label })
  )
}

/** The URL of the layer 2, and the call policies. */
export interface Options extends Omit<Addresses, "addresses">, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** Base URL of a node, with the endpoint key in the path, or base URL of a gateway with the path `/l2`. */
  readonly url: string | Redacted.Redacted
}

/**
 * Provides `Layer2` over the request pipeline (limits, cache, retries) in the context. Use this layer if several chains
 * share a pipeline.
 *
 * Each call returns a new layer with a separate `Layer2`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (addresses: Addresses): Layer.Layer<Layer2, never, Pipeline.Pipeline> =>
  Layer.effect(Layer2, Effect.map(make(addresses), makeService))

/**
 * Provides `Layer2` over the HTTP transport in the context. Each call returns a new layer with separate limits and a
 * separate cache.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<Layer2, never, HttpTransport> =>
  Layer.provide(layerNoDeps({ ...options, addresses: [url] }), Pipeline.layer(options))

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (options: Options): Layer.Layer<Layer2, never, HttpClient.HttpClient> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Layer2Upstream } from "@trigate/evm"
 * import { Console, Effect } from "effect"
 *
 * const program = Layer2Upstream.Layer2.use(({ chainId }) => Effect.flatMap(chainId(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Upstream.layerFetch({ url: "http://localhost:8080/l2" })))
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<Layer2> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (options: Options): Layer.Layer<Layer2> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layerUndici())
