/**
 * The WebSockets and event streams of all callers of a gateway. They persist across changes of settings, and end with
 * the gateway.
 *
 * Checks pings and progress once a second, and the validity of keys every two seconds.
 */
import { resume as resumeQuery } from "@trigate/api/Paths"
import type { CallerKeys } from "@trigate/callers/CallerKeys"
import type { Caller } from "@trigate/domain/Caller"
import { millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { CommonFailure, QuotaExceeded, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as EvmOperations from "@trigate/domain/evm/EvmProtocol"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import * as ResumePosition from "@trigate/domain/unstable/streams/Subscription"
import type { Layer2 } from "@trigate/evm/Layer2"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import type { SendRead } from "@trigate/evm/unstable/Heads"
import type { Queries as GuardQueries } from "@trigate/trading/guard/Guard"
import type { Info } from "@trigate/trading/Info"
import type { Queries, SharedStreams } from "@trigate/trading/streams/Streams"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type * as ResumableSubscriber from "@trigate/trading/unstable/streams/ResumableSubscriber"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Chains, FeedChain } from "../Chains.ts"
import * as StreamMetrics from "../process/Metrics.ts"
import type * as AccessLog from "../requests/Observe.ts"
import * as Request from "../requests/Request.ts"
import { RpcSession, Session } from "./Session.ts"
import type { FilterUse, Options as EventStreamOptions, ServedEvents, Surroundings } from "./Session.ts"
import * as SocketRequests from "./SocketRequests.ts"
import * as WebSocketFrame from "./SocketSession.ts"
import type { Allowance, Closing, Limits, Opened, SocketSession, Traffic } from "./SocketSession.ts"

/** The limits of one caller. */
export interface CallerLimits {
  /** Maximum number of open sockets and event streams. */
  readonly sockets: number
  /** Maximum number of bytes per second from a caller, in total on all of its sockets. */
  readonly bytesIn: number
  readonly bytesOut: number
}

/** Makes the counters of callers' open sockets and remaining bytes. */
export const makeUse = ({ bytesIn, bytesOut, sockets }: CallerLimits) => {
  const callers = new Map<string, Traffic & { open: number }>()

  /** Counts a socket. Returns the bytes that the socket's caller can still send and receive in the current second. */
  const open = ({ id }: Caller): Traffic => {
    const use = callers.get(id) ?? { open: 0, in: { left: bytesIn }, out: { left: bytesOut } }
    callers.set(id, use)
    use.open++
    return use
  }

  const close = ({ id }: Caller): void => {
    const use = callers.get(id)
    if (use !== undefined && --use.open === 0) callers.delete(id)
  }

  return {
    /**
     * Runs the opening of a socket or an event stream, which counts as open until the opening ends. Fails if the caller
     * has the maximum number.
     */
    admit: <A, E, R>(caller: Caller, opening: Effect.Effect<A, E, R>): Effect.Effect<A, E | QuotaExceeded, R> =>
      Effect.suspend((): Effect.Effect<A, E | QuotaExceeded, R> => {
        const most = caller.quota.sockets ?? sockets
        if ((callers.get(caller.id)?.open ?? 0) >= most) {
          return Exit.fail(
            new QuotaExceeded({ retryAfter: 60, detail: `This caller already has ${most} open WebSockets` })
          )
        }
        open(caller)
        return Effect.ensuring(opening, Effect.sync(() => close(caller)))
      }),
    open,
    close,
    isOpen: (caller: string): boolean => callers.has(caller),
    /** Adds the bytes of one second to the bytes that each caller can still send and receive. */
    refill: (): void => {
      for (const use of callers.values()) {
        // bytes beyond the limit are deducted from the next second
        use.in.left = Math.min(bytesIn, use.in.left + bytesIn)
        use.out.left = Math.min(bytesOut, use.out.left + bytesOut)
      }
    }
  }
}

/** Maximum bytes of the filters of open EVM subscriptions; a quarter for one caller. */
export const mostFilters = 64 * 1024 * 1024

/** Makes the counter of the bytes of open subscriptions' filters. */
export const makeFilterUse = (): FilterUse => {
  const byCaller = new Map<string, number>()
  let all = 0
  const add = (caller: string, bytes: number): void => {
    const own = (byCaller.get(caller) ?? 0) + bytes
    all += bytes
    if (own === 0) byCaller.delete(caller)
    else byCaller.set(caller, own)
  }
  return {
    reserve: (caller, bytes) => {
      const isFree = all + bytes <= mostFilters && (byCaller.get(caller) ?? 0) + bytes <= mostFilters / 4
      if (isFree) add(caller, bytes)
      return isFree
    },
    release: (caller, bytes) => add(caller, -bytes),
    byCaller
  }
}

/** Returns the bytes that are retained for callers, by caller group. */
export const retainedByGroup = (
  streams: Iterable<Pick<ServedEvents | SocketSession, "caller" | "pending">>,
  filters: ReadonlyMap<string, number>
): ReadonlyMap<string, number> => {
  const byGroup = new Map<string, number>()
  const add = (caller: string, bytes: number): void => {
    const group = Request.callerGroup(caller)
    byGroup.set(group, (byGroup.get(group) ?? 0) + bytes)
  }
  for (const { caller, pending } of streams) add(caller.id, pending)
  for (const [caller, bytes] of filters) add(caller, bytes)
  return byGroup
}

/** Maximum unread bytes of all streams. Beyond, the streams with the most are closed. */
export const mostUnread = 64 * 1024 * 1024

/** A stream whose client may read slowly. */
export interface PendingStream {
  readonly pending: number
  readonly close: (closing: Closing) => void
}

/** Closes the streams with the most pending bytes until at most `most` bytes wait. Returns the bytes that wait. */
export const limitPending = (streams: ReadonlyArray<PendingStream>, most = mostUnread): number => {
  let all = streams.reduce((sum, { pending }) => sum + pending, 0)
  if (all <= most) return all
  for (const stream of streams.toSorted((a, b) => b.pending - a.pending)) {
    if (all <= most) break
    all -= stream.pending
    stream.close("slow")
  }
  return all
}

const nothing = new Uint8Array()

/**
 * Counts bytes against a caller's allowance, and returns the bytes. While the allowance is used up, waits. Returns no
 * bytes if the stream is closed.
 */
export const charge = (stream: ServedEvents, allowance: Allowance) => (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  Effect.suspend(() => {
    stream.isThrottled = allowance.left <= 0
    if (stream.closing !== undefined) return Effect.succeed(nothing)
    if (stream.isThrottled) return Effect.andThen(Effect.sleep("1 second"), charge(stream, allowance)(bytes))
    allowance.left -= bytes.length
    return Effect.succeed(bytes)
  })

const oneSecond = 1000

/** Milliseconds between two pings. Proxies close connections that are idle for 60 seconds. */
const pingEvery = 25 * oneSecond

/**
 * Milliseconds without progress after which a socket is closed. A socket makes no progress if its full buffer does not
 * empty, or if no pong arrives.
 */
const stuckAfter = 60 * oneSecond

/** Milliseconds that a peer has to respond to a close frame. */
const closeWithin = 3 * oneSecond

/** Sends a ping if one is due. Closes the socket if it is stuck, or does not respond to a close frame. */
export const checkProgress = (session: SocketSession, at: MonotonicTime): void => {
  const { closedAt, connection, progress } = session
  if (closedAt !== undefined) {
    if (millisBetween(closedAt, at) >= closeWithin) connection.destroy()
    return
  }
  const written = connection.bytesWritten - connection.writableLength
  const read = connection.bytesRead
  // written bytes show progress only while the outbox is full; otherwise the operating system might only have buffered
  // them
  if (read !== progress.read || (written !== progress.written && session.outbox.isFull)) progress.at = at
  progress.written = written
  progress.read = read
  if (millisBetween(progress.at, at) >= stuckAfter) {
    if (session.outbox.isFull) session.close("slow")
    else connection.destroy()
  } else if (millisBetween(progress.pinged, at) >= pingEvery && !session.outbox.isFull) {
    progress.pinged = at
    session.outbox.push(WebSocketFrame.ping)
    session.outbox.flush()
  }
}

/**
 * Checks the keys of sessions, each key once. Closes the sessions whose key is no longer valid, or whose key's scope no
 * longer allows them.
 */
export const checkSessionKeys = (
  { check }: CallerKeys["Service"],
  sessions: Iterable<readonly [ServedEvents | SocketSession, Redacted.Redacted | undefined]>
): Effect.Effect<void> => {
  if (check === undefined) return Effect.void
  const byKey = new Map<
    string,
    { readonly key: Redacted.Redacted; readonly held: Array<ServedEvents | SocketSession> }
  >()
  for (const [session, key] of sessions) {
    if (key === undefined) continue
    const text = Redacted.value(key)
    const group = byKey.get(text)
    if (group === undefined) byKey.set(text, { key, held: [session] })
    else group.held.push(session)
  }
  return Effect.forEach(byKey.values(), ({ held, key }) =>
    Effect.matchEager(check(key), {
      onSuccess: (caller) => {
        for (const session of held) {
          session.caller = caller
          if (!session.isCoveredBy(caller)) session.close("key")
        }
      },
      onFailure: (error) => {
        // if the key store cannot be read, the sessions stay open, because their keys may be valid
        if (error._tag === "Unauthorized") { for (const session of held) session.close("key") }
      }
    }), { discard: true })
}

/** The limits of a gateway's sockets. */
export interface Options extends Limits, CallerLimits {
  /**
   * Called once a second for each socket. Returns whether to close the socket, as an injected fault. Default: never.
   */
  readonly isCut?: () => boolean
}

/** The services that are built from the current settings. */
export interface Serving extends SocketRequests.Services {
  readonly evm: TradingEvm["Service"]
  readonly layer2: Layer2["Service"]
  readonly keys: CallerKeys["Service"]
  readonly log: AccessLog.AccessLog["Service"]
}

/** The protocol of a socket: the venue's, or the JSON-RPC of a chain's route. */
export type SocketProtocol =
  | { readonly protocol: "venue"; readonly streams: SharedStreams }
  | ({ readonly protocol: "jsonrpc" } & SocketRequests.RpcRoute)

/** A request for a socket: its caller, its record, and the protocol that the socket serves. */
export interface StreamRequest {
  readonly caller: Caller
  readonly record: Request.RequestRecord
  readonly request: Request.IncomingRequest
  readonly serves: SocketProtocol
  readonly upgrade: Exclude<Request.IncomingRequest["upgrade"], undefined>
}

/**
 * The sockets of a gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class Sessions extends Context.Service<Sessions, {
  /** Returns the streams of the venue; `undefined` if that chain is not configured. */
  readonly streams: () => SharedStreams | undefined
  /** Applies new settings. */
  readonly use: (serving: Serving) => void
  /** Closes the sockets of pages whose origin the new settings do not allow. */
  readonly closeForeign: (isForeign: (headers: HttpServerRequest["headers"]) => boolean) => void
  /**
   * Runs the opening of a socket or an event stream, which counts as open from now on. Fails if the caller has the
   * maximum number of open sockets.
   */
  readonly admit: <A, E, R>(caller: Caller, opening: Effect.Effect<A, E, R>) => Effect.Effect<A, E | QuotaExceeded, R>
  /**
   * Upgrades a request to a WebSocket and starts its session. Then interrupts its own fiber, because the route has no
   * response to send.
   */
  readonly run: (request: StreamRequest) => Effect.Effect<never>
  /** Returns whether a caller has an open socket or event stream. */
  readonly isConnected: (caller: string) => boolean
  /** Returns the state of each EVM chain's feed, which follows the chain's newest blocks. */
  readonly feeds: () => ReadonlyArray<EvmFeed.FeedStatus>
  /** Serves an event stream that its route has made. The stream counts as a socket until the response ends. */
  readonly serve: (
    stream: ServedEvents,
    headers: HttpServerRequest["headers"],
    record: Request.RequestRecord
  ) => Stream.Stream<Uint8Array>
  /** The options of every event stream of subscriptions: the maximum size of its queue, and the clock. */
  readonly eventOptions: Pick<EventStreamOptions, "now" | "queue">
  /** Maximum number of subscriptions on one socket. */
  readonly mostSubscriptions: number
  /**
   * Closes all sockets, spread over the time `within`. Returns when all sockets are closed, or soon after `within` has
   * passed.
   */
  readonly drain: (within: Duration.Duration) => Effect.Effect<void>
}>()("@trigate/server/streams/Sessions") {}

const second = 1000

/** Milliseconds between two checks of the keys. */
const keysEvery = 2 * second

/** Parses the position of `/ws?resume=`; `undefined` without the parameter. */
const parseResume = (url: string): ResumableSubscriber.Start | undefined => {
  const queryString = /\?(.*)$/u.exec(url)?.[1]
  const text = queryString === undefined ? null : new URLSearchParams(queryString).get(resumeQuery)
  return text === null ? undefined : { from: ResumePosition.parse(text) }
}

const isCommonFailure = Schema.is(CommonFailure)

/**
 * The services that were last built from settings, for whatever persists when the settings change.
 *
 * @since 0.1.0
 * @category services
 */
export class CurrentServices extends Context.Service<CurrentServices, {
  /** Replaces the services. */
  readonly use: (serving: Serving) => void
  /** Returns the services; `undefined` before the first settings are applied. */
  readonly get: () => Serving | undefined
  /** The queries of the venue. They wait for the first settings. */
  readonly queries: Queries & GuardQueries
  /** Returns the function that queries the nodes of an EVM chain. */
  readonly sendToNode: (chain: FeedChain) => SendRead
}>()("@trigate/server/streams/Sessions/CurrentServices") {}

const makeCurrent = Effect.gen(function*() {
  let serving: Serving | undefined
  const isServing = yield* Deferred.make<void>()
  /** Waits for the first settings, because the candle recorder subscribes before any settings are applied. */
  const withInfo = <A, E>(use: (info: Info["Service"]) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() =>
      serving === undefined ? Effect.andThen(Deferred.await(isServing), withInfo(use)) : use(serving.info)
    )
  return CurrentServices.of({
    use: (next) => {
      serving = next
      Deferred.doneUnsafe(isServing, Exit.void)
    },
    get: () => serving,
    queries: {
      allMids: (request) => withInfo((info) => info.allMids(request)),
      clearinghouseState: (request) => withInfo((info) => info.clearinghouseState(request)),
      frontendOpenOrders: (request) => withInfo((info) => info.frontendOpenOrders(request)),
      meta: (request) => withInfo((info) => info.meta(request)),
      metaAndAssetCtxs: (request) => withInfo((info) => info.metaAndAssetCtxs(request)),
      outcomeMeta: () => withInfo((info) => info.outcomeMeta()),
      perpDexs: () => withInfo((info) => info.perpDexs()),
      relay: (call) => withInfo((info) => info.relay(call)),
      spotClearinghouseState: (request) => withInfo((info) => info.spotClearinghouseState(request)),
      spotMeta: () => withInfo((info) => info.spotMeta()),
      userRole: (request) => withInfo((info) => info.userRole(request))
    },
    sendToNode: (chain) => (call) =>
      Effect.suspend(() =>
        serving === undefined ? Effect.never : (chain === "trading" ? serving.evm : serving.layer2).relay(call)
      ).pipe(
        Effect.mapError(unwrapReason),
        // reads of blocks and logs have no other errors
        //
        // @effect-diagnostics-next-line catchConditionalRefailToCatchIf:off -- the refinement names the remaining errors
        Effect.catch((error) => isCommonFailure(error) ? Effect.fail(error) : Effect.die(error))
      )
  })
})

/**
 * Provides the current services: none, until routes are built. Each call returns a new layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCurrent = (): Layer.Layer<CurrentServices> => Layer.effect(CurrentServices, makeCurrent)

/** For each chain, the chain and protocol of the requests that its block feed sends to the node. */
const feedServing = { trading: EvmOperations.serving, layer2: Layer2Operations.serving } as const

/**
 * Opens the feeds of the EVM chains, which follow the newest blocks for callers' subscriptions. By default, a feed
 * polls the node.
 */
export const openFeeds = Effect.fnUntraced(function*(
  optionsOf: (chain: FeedChain) => Pick<EvmFeed.Options, "addresses" | "pollAtLeast"> = () => ({})
) {
  const { sendToNode } = yield* CurrentServices
  const open = (chain: FeedChain) =>
    EvmFeed.make({ serving: feedServing[chain], send: sendToNode(chain), ...optionsOf(chain) })
  return { trading: yield* open("trading"), layer2: yield* open("layer2") }
})

/** Makes the sockets of a gateway, which serve the streams of the venue and the feeds of the EVM chains. */
export const make = Effect.fnUntraced(function*(
  { feeds, streams }: Pick<Chains["Service"], "feeds" | "streams">,
  options: Options
) {
  const clock = yield* Clock.Clock
  const current = yield* CurrentServices
  const scope = yield* Scope.Scope
  const context = yield* Effect.context()
  const fork = Effect.runForkWith(context)
  const now = () => monotonicTime(clock)
  const sessions = new Map<SocketSession, Redacted.Redacted | undefined>()
  const eventStreams = new Map<ServedEvents, Redacted.Redacted | undefined>()
  const callers = makeUse(options)
  const filters = makeFilterUse()
  const metrics = StreamMetrics.make(context)
  const feedStatus = () => Object.values(feeds).map((feed) => feed.status())
  const requests = SocketRequests.make(context, now, current.get)
  let isDraining = false

  const countOpen = (caller: Caller): Traffic => {
    metrics.opened()
    return callers.open(caller)
  }

  const countClosed = (caller: Caller, reason: string, conflated: number): void => {
    callers.close(caller)
    metrics.closed(reason)
    metrics.conflated(conflated)
  }

  /** Returns the headers that identify the page of a request; `undefined` if the client is not a web page. */
  const pageHeaders = (host: string | undefined, origin: string | undefined) =>
    origin === undefined || host === undefined ? undefined : Headers.fromInput({ host, origin })

  const closed = (session: SocketSession, reason: string): void => {
    if (!sessions.delete(session)) return
    session.end()
    const { caller, id, openedAt, outbox, received, route } = session
    countClosed(caller, reason, outbox.conflated)
    current.get()?.log.write?.({
      time: clock.currentTimeMillisUnsafe(),
      id,
      method: "GET",
      route,
      status: 101,
      milliseconds: millisBetween(openedAt, now()),
      caller: caller.id,
      key: caller.key,
      operations: [],
      error: undefined,
      traceId: undefined,
      socket: { closed: reason, received, sent: outbox.written, conflated: outbox.conflated }
    })
  }

  const around = { limits: options, now, fork, closed }
  let venue: Surroundings | undefined
  /** Returns the environment that sessions with the same streams share. */
  const surroundings = (shared: SharedStreams): Surroundings =>
    venue?.streams === shared ? venue : (venue = { ...around, streams: shared, post: requests.post })

  const begin = ({ caller, record, request, serves }: StreamRequest, socket: Request.CallerSocket): void => {
    const opened: Opened = {
      caller,
      socket,
      traffic: countOpen(caller),
      id: record.id ?? "",
      route: record.route,
      page: pageHeaders(Request.header(request, "host"), Request.header(request, "origin"))
    }
    const session = serves.protocol === "jsonrpc"
      ? new RpcSession(opened, {
        ...around,
        chain: serves.chain,
        feed: feeds[serves.chain],
        filters,
        reply: requests.reply(serves)
      })
      : new Session(opened, surroundings(serves.streams), parseResume(request.url))
    sessions.set(session, record.key)
    socket.read(session)
    if (isDraining) session.close("drain")
  }

  /** Reads newer account events from the shared log if this process lacks the position from which a socket resumes. */
  const caughtUp = ({ request: { url }, serves }: StreamRequest): Effect.Effect<void> => {
    const from = serves.protocol === "venue" ? parseResume(url)?.from : undefined
    return serves.protocol === "venue" && from !== undefined ? serves.streams.events.catchUp(from) : Exit.void
  }

  const run = (opened: StreamRequest): Effect.Effect<never> =>
    Effect.flatMap(
      caughtUp(opened),
      () =>
        Effect.flatMap(opened.upgrade(), (socket) => {
          // undefined if the client disconnected before the handshake
          if (socket !== undefined) begin(opened, socket)
          return Exit.interrupt()
        })
    )

  const serve = (
    stream: ServedEvents,
    headers: HttpServerRequest["headers"],
    record: Request.RequestRecord
  ): Stream.Stream<Uint8Array> => {
    const { caller } = stream
    stream.page = pageHeaders(headers["host"], headers["origin"])
    eventStreams.set(stream, record.key)
    const { out } = countOpen(caller)
    if (isDraining) stream.close("drain")
    return stream.texts.pipe(
      Stream.mapEffect(charge(stream, out)),
      Stream.ensuring(Effect.sync(() => {
        if (!eventStreams.delete(stream)) return
        stream.end()
        countClosed(caller, stream.closing ?? "client", stream.conflated)
      }))
    )
  }

  const checkKeys = Effect.suspend(() => {
    const serving = current.get()
    return serving === undefined ? Effect.void : checkSessionKeys(serving.keys, [...sessions, ...eventStreams])
  })

  let keysAt = now()
  const tick = Effect.suspend(() => {
    const at = now()
    callers.refill()
    for (const session of sessions.keys()) {
      session.outbox.resume()
      if (options.isCut?.() === true) session.connection.destroy()
      else checkProgress(session, at)
    }
    for (const stream of eventStreams.keys()) stream.keepAlive()
    const all = [...sessions.keys(), ...eventStreams.keys()]
    const unread = limitPending(all)
    metrics.publish(streams(), all.length, unread, retainedByGroup(all, filters.byCaller), feedStatus())
    if (millisBetween(keysAt, at) < keysEvery) return Effect.void
    keysAt = at
    return checkKeys
  })
  yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep("1 second"), tick)), scope)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const session of sessions.keys()) session.connection.destroy()
    })
  )

  const drain = Effect.fnUntraced(function*(within: Duration.Duration) {
    isDraining = true
    const slices = Math.max(1, Math.ceil(Duration.toMillis(within) / 50))
    const open = [...sessions.keys(), ...eventStreams.keys()]
    const each = Math.max(1, Math.ceil(open.length / slices))
    for (let from = 0; from < open.length; from += each) {
      for (const session of open.slice(from, from + each)) session.close("drain" satisfies Closing)
      if (from + each < open.length) yield* Effect.sleep("50 millis")
    }
    // after two seconds, destroys the sockets that did not respond to the close frame
    for (let waited = 0; sessions.size > 0 && waited < 40; waited++) yield* Effect.sleep("50 millis")
    for (const session of sessions.keys()) session.connection.destroy()
  })

  return Sessions.of({
    streams,
    use: current.use,
    closeForeign: (isForeign) => {
      for (const session of [...sessions.keys(), ...eventStreams.keys()]) {
        if (session.page !== undefined && isForeign(session.page)) session.close("origin")
      }
    },
    admit: callers.admit,
    run,
    isConnected: callers.isOpen,
    feeds: feedStatus,
    serve,
    eventOptions: { queue: options.queue, now },
    mostSubscriptions: options.subscriptions,
    drain
  })
})

/** The default limits of WebSockets. */
export const defaults: Options = {
  sockets: 100,
  bytesIn: 1024 * 1024,
  bytesOut: 64 * 1024 * 1024,
  subscriptions: 1000,
  messages: 2000,
  posts: 100,
  queue: { frames: 10_000, bytes: 1024 * 1024 }
}

/**
 * Provides sockets without streams: each handshake is refused with `ChainNotConfigured`. The feeds of the EVM chains
 * poll the nodes. Each call returns a new layer with separate sockets.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNone = (): Layer.Layer<Sessions> =>
  Layer.effect(
    Sessions,
    Effect.flatMap(openFeeds(), (feeds) => make({ streams: () => undefined, feeds }, defaults))
  ).pipe(Layer.provide(layerCurrent()))
