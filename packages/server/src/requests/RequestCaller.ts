/**
 * Who a request comes from: the caller whose key it carries, else the one behind its address.
 *
 * A key is the first segment of the path, as on the node provider's surface, or stands in `Authorization: Bearer`, in
 * `X-API-Key` or in `api_key` of the query, as stock clients send it. No upstream ever sees it.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import { CurrentCaller, CurrentKeepCounted } from "@trigate/domain/Caller"
import type { Caller, KeepCounted, Quota } from "@trigate/domain/Caller"
import type { Overloaded, QuotaExceeded } from "@trigate/domain/errors/CallerError"
import { Unauthorized } from "@trigate/domain/errors/CallerError"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { monotonicMillis } from "@trigate/domain/Time"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { overloaded } from "../process/Load.ts"
import { methodsOf, ofDocs } from "../routes/Unmatched.ts"
import { CurrentRequestFacts } from "./RequestFacts.ts"
import type { Admitted, RequestFacts } from "./RequestFacts.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage } from "node:http"

/** The proxies whose word on the address of a caller counts; by default none. */
export const TrustedProxies = Context.Reference<ReadonlyArray<IpNetwork.IpNetwork>>("@trigate/server/TrustedProxies", {
  defaultValue: () => []
})

const queryName = "api_key"

/** Whether a query parameter is the caller's key, and so none of a method's params. */
export const isQueryName = (name: string): boolean => name === queryName

// names are read decoded, as those of a method's params are
const inQuery = (url: string): ReadonlyArray<string> => {
  const start = url.indexOf("?")
  return start < 0 ? [] : new URLSearchParams(url.slice(start + 1)).getAll(queryName)
}

// a caller that forgets the key in `/{key}/…` would otherwise use a route's name as one
const reserved: ReadonlySet<string> = new Set(
  [...Object.keys(methodsOf(GatewayApi)), ...Object.keys(ofDocs)].map((path) => path.split("/")[1] ?? "")
    .filter((segment) => !segment.startsWith(":"))
)

/** A key that the contract takes in a path. */
const plainKey = /^[A-Za-z0-9_-]{1,128}$/u

const bearer = /^Bearer +(?<key>.*)$/iu

/** What a head says of its caller. */
interface Head {
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** Every `Authorization` that came: of several, the headers have the first alone. */
  readonly authorizations: () => ReadonlyArray<string>
  /** The address of the other end of the connection. */
  readonly peer: () => string
}

const fieldOf = ({ headers }: Head, name: string): string | undefined => {
  const value = headers[name]
  return Predicate.isString(value) ? value : undefined
}

const headOf = (message: IncomingMessage): Head => ({
  headers: message.headers,
  authorizations: () => message.headersDistinct["authorization"] ?? [],
  peer: () => message.socket.remoteAddress ?? ""
})

const headOfRequest = (request: HttpServerRequest): Head => {
  const message = NodeHttpServerRequest.toIncomingMessage(request)
  const { authorization } = request.headers
  return {
    headers: request.headers,
    authorizations: () =>
      authorization === undefined
        ? []
        : message instanceof IncomingMessage
        ? message.headersDistinct["authorization"] ?? [authorization]
        : [authorization],
    peer: () => Option.getOrElse(request.remoteAddress, () => "")
  }
}

/** The keys that a request carries besides those in its target, each once. */
const keysOf = (head: Head, inTarget: ReadonlyArray<string>): ReadonlyArray<string> => {
  const inHeader = fieldOf(head, "x-api-key")
  const hasAuthorization = head.headers["authorization"] !== undefined
  if (inTarget.length === 1 && inHeader === undefined && !hasAuthorization) return inTarget
  const keys = new Set(inTarget)
  if (inHeader !== undefined) keys.add(inHeader)
  if (hasAuthorization) {
    for (const text of head.authorizations()) {
      const key = bearer.exec(text)?.groups?.["key"]
      if (key !== undefined) keys.add(key)
    }
  }
  return [...keys]
}

const refuse = (detail: string) => Effect.suspend(() => Effect.fail(new Unauthorized({ detail })))

const routeAsKey = refuse("The name of a route is no endpoint key")
const noKey = refuse(
  "This gateway serves callers with a key: send it in Authorization: Bearer, in X-API-Key or as first segment of the path"
)
const severalKeys = refuse("The request carries two different keys")

/** An address; IPv4 that is written as IPv6 is IPv4, and a zone (`fe80::1%eth0`) does not count. */
export const addressOf = (text: string): NetAddress.IpAddress | undefined => {
  const address = Result.getOrUndefined(NetAddress.ipFromString(text.replace(/%.*$/u, "")))
  return address && NetAddress.toCanonical(address)
}

// a port follows an IPv4 address, or an IPv6 address in brackets
const nodeOf = (text: string): NetAddress.IpAddress | undefined =>
  addressOf(
    text.trim().replace(/^"(.*)"$/u, "$1").replace(/^\[([^\]]*)\](?::[0-9]+)?$/u, "$1").replace(
      /^([0-9.]+):[0-9]+$/u,
      "$1"
    )
  )

const forwardedFor = /(?:^|;)\s*for=(?<node>"[^"]*"|[^;]*)/iu

/** The addresses that proxies have noted, the nearest last; nothing for one that is hidden or none. */
const hopsOf = (head: Head): ReadonlyArray<NetAddress.IpAddress | undefined> => {
  const forwarded = fieldOf(head, "forwarded")
  const list = fieldOf(head, "x-forwarded-for")
  // a proxy writes one of the two and may pass on what its caller wrote in the other
  if (forwarded !== undefined && list !== undefined) return []
  if (list !== undefined) return list.split(",").map(nodeOf)
  return (forwarded?.split(",") ?? []).map((hop) => nodeOf(forwardedFor.exec(hop)?.groups?.["node"] ?? ""))
}

/** The nearest address that is no trusted proxy's. */
const clientOf = (
  head: Head,
  peer: NetAddress.IpAddress,
  trusted: ReadonlyArray<IpNetwork.IpNetwork>
): NetAddress.IpAddress => {
  const isTrusted = (address: NetAddress.IpAddress) => trusted.some((network) => IpNetwork.contains(network, address))
  let client = peer
  for (const hop of hopsOf(head).toReversed()) {
    if (hop === undefined || !isTrusted(client)) break
    client = hop
  }
  return client
}

/** What tells one subscriber from another, who has at least a /64 of IPv6 and changes addresses in it at will (RFC 6177). */
export const subscriberOf = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : IpNetwork.format(IpNetwork.fromAddressUnsafe(address, 64))

const unaddressed: Caller = { id: "address:unknown", scope: {}, quota: {} }

/** The most addresses whose callers are cached. */
const maxCached = 10_000

const byAddress = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  const cached = new Map<string, Caller>()
  const callerAt = (address: NetAddress.IpAddress): Caller => ({
    id: `address:${subscriberOf(address)}`,
    scope: {},
    quota: {}
  })
  const callerAtPeer = (text: string): Caller => {
    const known = cached.get(text)
    if (known !== undefined) return known
    const peer = addressOf(text)
    const caller = peer === undefined ? unaddressed : callerAt(peer)
    if (cached.size >= maxCached) cached.clear()
    cached.set(text, caller)
    return caller
  }
  return (head: Head): Caller => {
    if (trusted.length === 0) return callerAtPeer(head.peer())
    const address = addressOf(head.peer())
    return address === undefined ? unaddressed : callerAt(clientOf(head, address, trusted))
  }
}

/** Who is served, and when. */
export interface Serving {
  /** Serves a request for the caller from whom it comes, who is the `CurrentCaller` meanwhile; refused while the gateway is busy. */
  readonly serve: <A, E, R>(
    request: HttpServerRequest,
    keyInPath: Redacted.Redacted | undefined,
    handled: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | Overloaded | Unauthorized | QuotaExceeded | UpstreamUnavailable, R>
  /**
   * Says for whom a request without a query is served now, and counts it, where nothing has to wait.
   *
   * Answers undefined, and has counted nothing, for every request that is refused, and while the gateway is busy.
   */
  readonly tryAdmit: (
    message: IncomingMessage,
    keyInPath: string | undefined,
    facts: RequestFacts,
    clock: Clock.Clock
  ) => Admitted | undefined
}

const isCounted = ({ concurrentCalls, requestsPerSecond }: Quota): boolean =>
  requestsPerSecond !== undefined || concurrentCalls !== undefined

/** Notes what is left of a caller's quota. */
const note = (facts: RequestFacts, { quota }: Caller, standing: Quotas.Standing): void => {
  facts.quota = Quotas.fieldsOf(quota, standing)
}

const uncounted = (caller: Caller): Admitted => ({
  caller,
  provide: Effect.provideService(CurrentCaller, caller),
  end: constVoid
})

/**
 * Makes {@link Serving} of the `CallerKeys`, the `Quotas` and the {@link TrustedProxies} of the context.
 *
 * With keys, a request without one, with two different ones or with one that is not known fails with `Unauthorized`. A request
 * beyond its caller's quota fails with `QuotaExceeded`, before its body is read.
 */
export const serving: Effect.Effect<Serving, never, CallerKeys | Quotas.Quotas> = Effect.gen(function*() {
  const { check, tryCheck } = yield* CallerKeys
  const quotas = yield* Quotas.Quotas
  const atAddress = byAddress(yield* TrustedProxies)

  const callerOf = (request: HttpServerRequest, inPath: Redacted.Redacted | undefined, facts: RequestFacts) => {
    const head = headOfRequest(request)
    if (check === undefined) {
      return inPath !== undefined && reserved.has(Redacted.value(inPath))
        ? routeAsKey
        : Effect.succeed(atAddress(head))
    }
    const inQueryOrPath = inPath === undefined
      ? inQuery(request.url)
      : [...inQuery(request.url), Redacted.value(inPath)]
    const [key, another] = keysOf(head, inQueryOrPath)
    if (key === undefined) return noKey
    if (another !== undefined) return severalKeys
    facts.key = Redacted.make(key)
    return check(facts.key)
  }

  const tryCaller = (message: IncomingMessage, inPath: string | undefined, clock: Clock.Clock): Caller | undefined => {
    const head = headOf(message)
    if (check === undefined) {
      // the router takes the name of a route in any letter case
      const isKey = inPath === undefined || plainKey.test(inPath) && !reserved.has(inPath.toLowerCase())
      return isKey ? atAddress(head) : undefined
    }
    const [key, another] = keysOf(head, inPath === undefined ? [] : [inPath])
    return key === undefined || another !== undefined ? undefined : tryCheck?.(key, clock.currentTimeMillisUnsafe())
  }

  /** Counts calls of a caller with a quota, and notes what is left of the quota. */
  const count = (caller: Caller, facts: RequestFacts, calls: number): Effect.Effect<Quotas.Counted, QuotaExceeded> =>
    Effect.tapError(
      Effect.tap(quotas.count(caller, calls), (counted) => Effect.sync(() => note(facts, caller, counted))),
      ({ retryAfter }) => Effect.sync(() => note(facts, caller, { remaining: 0, reset: retryAfter * 1000 }))
    )

  /** A counted request: its count ends when the request has ended, and everything that outlives it. */
  const admitted = (caller: Caller, facts: RequestFacts, { end }: Quotas.Counted): Admitted => {
    const ends = [end]
    let holders = 0
    const keep: KeepCounted = () => {
      let isHeld = true
      holders++
      return () => {
        if (isHeld && --holders === 0) { for (const end of ends) end() }
        isHeld = false
      }
    }
    return {
      caller,
      provide: (effect) =>
        effect.pipe(Effect.provideService(CurrentCaller, caller), Effect.provideService(CurrentKeepCounted, keep)),
      countMore: (calls) =>
        // the request may end meanwhile
        Effect.acquireUseRelease(
          Effect.sync(keep),
          () => Effect.uninterruptible(Effect.map(count(caller, facts, calls), ({ end }) => void ends.push(end))),
          (release) => Effect.sync(release)
        ),
      charge: (requests) => {
        const { concurrentCalls: _, ...quota } = caller.quota
        return Effect.uninterruptible(
          Effect.map(count({ ...caller, quota }, facts, requests), ({ end }) => end())
        )
      },
      end: keep()
    }
  }

  const serve = <A, E, R>(
    request: HttpServerRequest,
    keyInPath: Redacted.Redacted | undefined,
    handled: Effect.Effect<A, E, R>
  ) =>
    Effect.withFiber<A, E | Overloaded | Unauthorized | QuotaExceeded | UpstreamUnavailable, R>((fiber) => {
      const facts = fiber.getRef(CurrentRequestFacts)
      const servedFor = (served: Admitted) => {
        facts.caller = served.caller
        return served.provide(handled)
      }
      if (facts.admitted === undefined && facts.load.isBusy) return overloaded
      return Effect.flatMap(callerOf(request, keyInPath, facts), (caller) => {
        // a guarded listener has counted the request before its route does
        if (facts.admitted?.caller.id === caller.id) return servedFor(facts.admitted)
        if (!isCounted(caller.quota)) return servedFor(uncounted(caller))
        facts.caller = caller
        return Effect.acquireUseRelease(
          Effect.map(count(caller, facts, 1), (counted) => facts.admitted = admitted(caller, facts, counted)),
          servedFor,
          ({ end }) => Effect.sync(end)
        )
      })
    })

  return {
    serve,
    tryAdmit: (message, keyInPath, facts, clock) => {
      const caller = facts.load.isBusy ? undefined : tryCaller(message, keyInPath, clock)
      if (caller === undefined) return undefined
      if (!isCounted(caller.quota)) return uncounted(caller)
      const counted = quotas.tryCount?.(caller, monotonicMillis(clock))
      if (counted === undefined) return undefined
      note(facts, caller, counted)
      return admitted(caller, facts, counted)
    }
  }
})
