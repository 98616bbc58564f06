/**
 * The upstreams of the venue: its API and nodes. Routes each call to the upstream addresses that serve
 * it.
 *
 * A node that is not an archive returns the latest count for any block, or an error. The check uses the sender of a
 * recent transaction: at the latest block, that sender's count is higher than at block 1.
 */
import { background, CurrentCaller } from "@trigate/domain/Caller"
import { Address, Quantity } from "@trigate/domain/encoding/Encoding"
import { ChainNotConfigured, type UnavailableOnNode } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { archiveServing, serving } from "@trigate/domain/evm/EvmProtocol"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import { archiveSetting, served } from "@trigate/domain/unstable/evm/EvmMethods"
import * as GatewayReads from "@trigate/evm/unstable/EvmFeed"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import * as Pipeline from "@trigate/upstream/Pipeline"
import {
  make as upstream,
  settings as upstreamSettings,
  targetName,
  targets
} from "@trigate/upstream/unstable/Upstream"
import type { Target, Upstream } from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AccountMirror from "./accounts/AccountMirror.ts"
import { ActionLog } from "./actionLog/ActionLog.ts"
import * as Admission from "./admission/Admission.ts"
import * as BarCache from "./candles/BarCache.ts"
import * as Exchange from "./Exchange.ts"
import * as Guard from "./guard/Guard.ts"
import * as Info from "./Info.ts"
import * as TradingEvm from "./TradingEvm.ts"
import { settings } from "./TradingSettings.ts"

const Block = Schema.Struct({
  number: Quantity,
  transactions: Schema.Array(Schema.Struct({ from: Address, gasPrice: Schema.optionalKey(Quantity) }))
})

const sendBlockRead = EvmProtocol.makeMethod(Operation.read({
  ...served(archiveServing),
  name: "eth_getBlockByNumber",
  summary: "A block with its transactions",
  request: Schema.Tuple([Schema.Union([Schema.Literal("latest"), Quantity]), Schema.Literal(true)]),
  response: Block,
  failures: []
}))

const sendCountRead = EvmProtocol.makeMethod(Operation.read({
  ...served(archiveServing),
  name: "eth_getTransactionCount",
  summary: "Number of transactions that an account has sent",
  request: Schema.Tuple([Address, Schema.Union([Schema.Literal("latest"), Quantity])]),
  response: Quantity,
  failures: []
}))

/** Maximum number of blocks to search for a transaction. */
const searched = 20

const oldBlock = 1n

/**
 * Checks whether a node is an archive. Returns `undefined` for an archive; otherwise returns why the node is not an
 * archive or could not be checked. The text follows the node's name in a log line.
 */
export const checkNode = (pipeline: Pipeline.Pipeline["Service"], target: Target) => {
  const nextId = Pipeline.requestIds()
  const send = (call: Omit<EvmProtocol.CheckedRead, "surface">) =>
    pipeline.attempt(
      { operation: call.operation, targets: [target] },
      EvmProtocol.reads.write({ ...call, surface: "gateway" }, nextId())
    )
  const blockAt = sendBlockRead("NodeArchive", target.label, send)
  const countAt = sendCountRead("NodeArchive", target.label, send)

  const sender = Effect.gen(function*() {
    let block = yield* blockAt(["latest", true])
    for (let left = searched; block.number > oldBlock + 1n; left--) {
      // the venue's own transactions have no gas price and do not increase their senders' transaction counts
      const found = block.transactions.find(({ gasPrice }) => gasPrice !== 0n)
      if (found !== undefined) return found.from
      if (left === 1) return undefined
      block = yield* blockAt([block.number - 1n, true])
    }
    return undefined
  })

  return Effect.gen(function*() {
    const from = yield* sender
    if (from === undefined) {
      return "is possibly not an archive node: the check found no transaction in its latest blocks"
    }
    const count = yield* countAt([from, "latest"])
    return yield* Effect.match(countAt([from, oldBlock]), {
      onFailure: () => "is not an archive node: it refuses block 1",
      onSuccess: (old) => old < count ? undefined : "is not an archive node: it returns the latest state for block 1"
    })
  }).pipe(
    Effect.orElseSucceed(() => "is possibly not an archive node: it did not respond to the check"),
    Effect.provideService(CurrentCaller, background("archive check"))
  )
}

/** Checks each node. Logs a warning for each node that is not an archive or cannot be checked. */
export const warn = (pipeline: Pipeline.Pipeline["Service"], targets: ReadonlyArray<Target>): Effect.Effect<void> =>
  Effect.forEach(targets, (target) =>
    Effect.flatMap(
      checkNode(pipeline, target),
      (finding) =>
        finding === undefined
          ? Effect.void
          : Effect.logWarning(`${archiveSetting} is on, but ${targetName(target)} ${finding}`)
    ), { concurrency: "unbounded", discard: true })

/**
 * Base URLs in order of preference. A URL may end in `/exchange`, `/info` or `/evm`. A node's URL contains its endpoint
 * key.
 */
export interface Addresses {
  /** Base URLs of the venue's API. */
  readonly api?: ReadonlyArray<string | Redacted.Redacted>
  /** Node providers. */
  readonly node?: ReadonlyArray<string | Redacted.Redacted>
  /**
   * Whether the nodes are archives, which serve state at every block. Default: false.
   *
   * Each node is checked when the layer is built. A node that is not an archive is logged, but still used.
   */
  readonly nodeArchive?: boolean
}

/** The upstreams of the venue (its API and the nodes), by the source that an operation declares. */
export type TradingUpstreams = { readonly [Kind in Operation.Source]: Upstream }

/** Makes the upstreams from their addresses. */
export const make = ({ api = [], node = [] }: Addresses): TradingUpstreams => ({
  "official-api": upstream("trading-api", api),
  node: upstream("trading-node", node)
})

/**
 * Reads `TRIGATE_TRADING_API_URL`, `TRIGATE_TRADING_NODE_URL` and `TRIGATE_TRADING_NODE_ARCHIVE`. A variable that is
 * not set adds no addresses.
 */
export const config: Config.Config<Addresses> = Config.all({
  api: upstreamSettings.tradingApiUrl,
  node: upstreamSettings.tradingNodeUrl,
  nodeArchive: settings.tradingNodeArchive
})

const settingNames: { readonly [Kind in Operation.Source]: string } = {
  "official-api": upstreamSettings.tradingApiUrl.env,
  node: upstreamSettings.tradingNodeUrl.env
}

const notConfigured = (operation: Operation.Operation, sources: ReadonlyArray<Operation.Source>): ChainNotConfigured =>
  new ChainNotConfigured({
    chain: "trading",
    detail: `No configured address serves ${operation.name} (${
      sources.map((source) => settingNames[source]).join(" or ")
    })`
  })

/** Returns the targets of a call, in the order of preference that its operation declares. */
export type Route = (
  operation: Operation.Operation,
  surface: Operation.Surface
) => Result.Result<Arr.NonEmptyReadonlyArray<Target>, ChainNotConfigured | UnavailableOnNode>

/**
 * Returns the function that finds the targets of an operation at a path such as `/info`.
 *
 * For an operation that only the venue's API serves, the function fails with `UnavailableOnNode` if the call was made
 * to the node routes, or if only nodes are configured. It fails with `ChainNotConfigured` if no configured address
 * serves the operation.
 */
export const routes = (upstreams: TradingUpstreams, path: string): Route => {
  const known = {
    gateway: new WeakMap<Operation.Operation, ReturnType<Route>>(),
    node: new WeakMap<Operation.Operation, ReturnType<Route>>()
  }
  const lists = new Map<string, ReadonlyArray<Target>>()
  // operations with the same sources share one list, so that their calls can be sent in one batch
  const findTargets = (sources: ReadonlyArray<Operation.Source>): ReadonlyArray<Target> => {
    const key = sources.join()
    const list = lists.get(key) ?? sources.flatMap((source) => targets(upstreams[source], path))
    lists.set(key, list)
    return list
  }
  const find: Route = (operation, surface) => {
    const sources = Operation.sourcesOn(operation, surface)
    const found = findTargets(sources)
    if (Arr.isReadonlyArrayNonEmpty(found)) return Result.succeed(found)
    const onlyNode = sources.length === 0 ||
      (!sources.includes("node") && upstreams.node.addresses.length > 0)
    return Result.fail(onlyNode ? Operation.unavailableOnNode(operation) : notConfigured(operation, sources))
  }
  return (operation, surface) => {
    const found = known[surface].get(operation)
    if (found !== undefined) return found
    const route = find(operation, surface)
    known[surface].set(operation, route)
    return route
  }
}

/** The caching options for `Info` responses. */
export interface InfoOptions {
  /**
   * The maximum age of cached responses for each type of query. Default: the age that the query's operation declares.
   */
  readonly infoFreshness?: ReadonlyArray<InfoOperations.Freshness> | undefined
  /**
   * The maximum age of a cached response that is returned while the rate limit is exhausted. Default: 5 seconds. At 0,
   * no stale response is returned.
   */
  readonly staleWhenLimited?: Duration.Input | undefined
  /** The current states of watched accounts, from which queries about these accounts are served. Default: none. */
  readonly mirror?: AccountMirror.AccountMirror | undefined
}

const { candleSnapshot, userFills } = InfoOperations.infoOperations

/**
 * Provides `Info` over the venue's API, and over nodes for the queries that nodes serve.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Info, TradingUpstream } from "@trigate/trading"
 * import { HttpTransport, Pipeline } from "@trigate/upstream"
 * import { Console, Effect, Layer } from "effect"
 *
 * const addresses = { api: ["http://localhost:8080"], node: ["http://localhost:8080"] }
 *
 * // one pipeline, and so one rate limit, for all services of the chain
 * const services = Layer.merge(TradingUpstream.layerInfo(addresses), TradingUpstream.layerEvm(addresses)).pipe(
 *   Layer.provide(Pipeline.layer({ readDeadline: "3 seconds" })),
 *   Layer.provide(HttpTransport.layerUndici())
 * )
 *
 * const program = Info.Info.use(({ allMids }) => Effect.flatMap(allMids(), (mids) => Console.log("BTC" in mids)))
 *
 * await Effect.runPromise(Effect.provide(program, services))
 * ```
 * ```text
 * true
 * ```
 */
export const layerInfo = (
  addresses: Addresses,
  { infoFreshness, mirror, staleWhenLimited }: InfoOptions = {}
): Layer.Layer<Info.Info, never, Pipeline.Pipeline> =>
  Layer.effect(
    Info.Info,
    Effect.gen(function*() {
      const pipeline = yield* Pipeline.Pipeline
      const upstreams = make(addresses)
      const route = routes(upstreams, "/info")
      const { node, "official-api": api } = upstreams
      const shared = {
        // with only nodes configured, the node addresses identify the network, so they are part of the cache namespace
        upstream: { ...api, addresses: [...api.addresses, ...node.addresses] },
        targetsOf: ({ operation, surface }: InfoOperations.InfoCall) => route(operation, surface)
      }
      const caching = { freshness: infoFreshness, staleWhenLimited }
      const reads = InfoOperations.readsWith(caching)
      const protocol = mirror === undefined ? reads : mirror.reads(reads)
      /**
       * Describes a query for the pipeline. Reserves the rate-limit permits for the longest possible response to the
       * query, and no more.
       */
      const makeRead = (call: InfoOperations.InfoCall, targets: Arr.NonEmptyReadonlyArray<Target>, now: number) => {
        const cost = InfoOperations.callCost(call, now)
        return { operation: cost === call.operation.cost ? call.operation : { ...call.operation, cost }, targets }
      }
      const send = (call: InfoOperations.InfoCall, targets: Arr.NonEmptyReadonlyArray<Target>) =>
        Effect.flatMap(
          Clock.currentTimeMillis,
          (now) => pipeline.attempt(makeRead(call, targets, now), protocol.write(call, 0))
        )
      const holes = yield* pipeline.reads({ ...shared, protocol: BarCache.gapReadsWith(caching), send })
      const serveQuery = yield* BarCache.make(holes.read)
      const backend = yield* pipeline.reads({
        ...shared,
        protocol,
        send: (call, targets) => {
          const sent = send(call, targets)
          if (call.operation === candleSnapshot) return serveQuery(call, sent)
          if (Admission.masterQueries.has(call.operation.name)) {
            return Effect.tap(sent, (response) => Admission.learn(pipeline.accounts, call, response))
          }
          return mirror !== undefined && call.operation === userFills
            ? Effect.map(sent, (response) => {
              mirror.learn(call, response)
              return response
            })
            : sent
        }
      })
      if (mirror === undefined) return Info.make(backend)
      mirror.connect({ put: backend.put, accounts: pipeline.accounts })
      return Info.make({
        read: (call) => {
          const detailed = mirror.detailed(call)
          return detailed === undefined
            ? backend.read(call)
            : Effect.map(Effect.flatMap(detailed, backend.read), AccountMirror.brief)
        }
      })
    })
  )

/**
 * Provides `TradingEvm` over nodes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerEvm = (
  addresses: Addresses,
  bounds: GatewayReads.Bounds = {}
): Layer.Layer<TradingEvm.TradingEvm, never, Pipeline.Pipeline> =>
  Layer.effect(
    TradingEvm.TradingEvm,
    Effect.gen(function*() {
      const upstreams = make(addresses)
      const route = routes(upstreams, "/evm")
      const node = yield* EvmUpstream.make({
        upstream: upstreams.node,
        targetsOf: ({ operation, surface }) => route(operation, surface)
      })
      const backend = yield* GatewayReads.makeGatewayReads(node, { ...bounds, serving, label: upstreams.node.label })
      const guard = yield* Guard.current
      if (addresses.nodeArchive !== true) return TradingEvm.make(backend, undefined, guard)
      yield* Effect.forkScoped(warn(yield* Pipeline.Pipeline, targets(upstreams.node, "/evm")))
      return TradingEvm.make(backend, archiveServing, guard)
    })
  )

const exchange = Effect.fnUntraced(function*(addresses: Addresses) {
  const admission = yield* Admission.Admission
  const pipeline = yield* Pipeline.Pipeline
  const upstreams = make(addresses)
  const route = routes(upstreams, "/exchange")
  const infoRoute = routes(upstreams, "/info")
  const changed = yield* Admission.makeAccountChanges(pipeline, (call) =>
    Effect.flatMap(
      Effect.fromResult(infoRoute(call.operation, call.surface)),
      (targets) => pipeline.attempt({ operation: call.operation, targets }, InfoOperations.reads.write(call, 0))
    ))
  const send: Exchange.Transport = ({ body, nonce, operation, signer, trace: { expiresAfter: expiresAt } }) =>
    Effect.flatMap(
      Effect.fromResult(route(operation, "gateway")),
      (targets) =>
        pipeline.once({ operation, targets, body, expiresAt }, { nonce, ...(signer === undefined ? {} : { signer }) })
    )
  return Exchange.make({ admission, log: yield* ActionLog, send, changed, guard: yield* Guard.current })
})

/**
 * Provides `Exchange` over the venue's API. Each call returns a new layer with a separate `Exchange`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExchange = (
  addresses: Addresses
): Layer.Layer<Exchange.Exchange, never, ActionLog | Admission.Admission | Pipeline.Pipeline> =>
  Layer.effect(Exchange.Exchange, exchange(addresses))
