/**
 * Determines the caller of a request: by its key, or without a key by the client's address.
 *
 * Unmodified clients send a key as the first segment of the path (as for node providers), in `Authorization: Bearer`,
 * in `X-API-Key`, or in the query parameter `api_key`. A key is not forwarded to upstreams.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import { type Caller, CurrentCaller, CurrentKeepCounted, type KeepCounted, type Quota } from "@trigate/domain/Caller"
import { Unauthorized } from "@trigate/domain/errors/GatewayError"
import type { Overloaded, QuotaExceeded, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { overloaded } from "../process/Load.ts"
import { methodsByPath, ofDocs } from "../routes/NotFoundRoutes.ts"
import { authorizations, header, peer, redactKey } from "./Request.ts"
import type { Admitted, IncomingRequest, RequestRecord } from "./Request.ts"

/** Proxies whose forwarding headers are trusted. Default: none. */
export const TrustedProxies = Context.Reference<ReadonlyArray<IpNetwork.IpNetwork>>("@trigate/server/TrustedProxies", {
  defaultValue: () => []
})

const queryName = "api_key"

/**
 * Returns whether a query parameter with this name contains the caller's key. All other parameters belong to the called
 * API method.
 */
export const isQueryName = (name: string): boolean => name === queryName

// `URLSearchParams` decodes the names, as it does for the parameters of API methods
const inQuery = (url: string): ReadonlyArray<string> => {
  const start = url.indexOf("?")
  return start < 0 ? [] : new URLSearchParams(url.slice(start + 1)).getAll(queryName)
}

// without this set, the name of a route would be used as the key if a caller omits the key in `/{key}/…`
const reserved: ReadonlySet<string> = new Set(
  [...Object.keys(methodsByPath(GatewayApi)), ...Object.keys(ofDocs)].map((path) => path.split("/")[1] ?? "")
    .filter((segment) => !segment.startsWith(":"))
)

/** Returns whether a path segment is the name of a route, in any letter case, as the router matches it. */
export const isReserved = (segment: string): boolean => reserved.has(segment.toLowerCase())

const bearer = /^Bearer +(?<key>.*)$/iu

/** Returns the keys in a request, without duplicates. */
const requestKeys = (request: IncomingRequest): ReadonlyArray<string> => {
  const { keyInPath, url } = request
  const keys = [...inQuery(url)]
  if (keyInPath !== undefined) keys.push(Redacted.value(keyInPath))
  const inHeader = header(request, "x-api-key")
  if (inHeader !== undefined) keys.push(inHeader)
  for (const text of authorizations(request)) {
    const key = bearer.exec(text)?.groups?.["key"]
    if (key !== undefined) keys.push(key)
  }
  return keys.length > 1 ? [...new Set(keys)] : keys
}

const refuse = (detail: string) => Effect.suspend(() => Effect.fail(new Unauthorized({ detail })))

const routeAsKey = refuse("The first segment of the path must be an endpoint key, not the name of a route")
const noKey = refuse(
  "This gateway requires a key: send it in Authorization: Bearer, in X-API-Key or as the first segment of the path"
)
const severalKeys = refuse("The request contains two different keys: send only one")

/** Parses an IP address; converts an IPv4-mapped IPv6 address to IPv4, and ignores a zone (`fe80::1%eth0`). */
export const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const address = Result.getOrUndefined(NetAddress.ipFromString(text.replace(/%.*$/u, "")))
  return address && NetAddress.toCanonical(address)
}

// a port follows an IPv4 address, or an IPv6 address in brackets
const parseForwardedNode = (text: string): NetAddress.IpAddress | undefined =>
  parseAddress(
    text.trim().replace(/^"(.*)"$/u, "$1").replace(/^\[([^\]]*)\](?::[0-9]+)?$/u, "$1").replace(
      /^([0-9.]+):[0-9]+$/u,
      "$1"
    )
  )

const forwardedFor = /(?:^|;)\s*for=(?<node>"[^"]*"|[^;]*)/iu

/**
 * Returns the client addresses that proxies recorded. The last address was recorded by the nearest proxy. A hidden or
 * malformed address is `undefined`.
 */
const forwardedHops = (request: IncomingRequest): ReadonlyArray<NetAddress.IpAddress | undefined> => {
  const forwarded = header(request, "forwarded")
  const list = header(request, "x-forwarded-for")
  // if both headers are present, none is trusted: a proxy writes one of them, and might forward the other one unchanged
  // from its client
  if (forwarded !== undefined && list !== undefined) return []
  if (list !== undefined) return list.split(",").map(parseForwardedNode)
  return (forwarded?.split(",") ?? []).map((hop) => parseForwardedNode(forwardedFor.exec(hop)?.groups?.["node"] ?? ""))
}

/** Returns the client's address: the nearest address that is not a trusted proxy. */
const clientAddress = (
  request: IncomingRequest,
  nearest: NetAddress.IpAddress,
  trusted: ReadonlyArray<IpNetwork.IpNetwork>
): NetAddress.IpAddress => {
  const isTrusted = (address: NetAddress.IpAddress) => trusted.some((network) => IpNetwork.contains(network, address))
  let client = nearest
  for (const hop of forwardedHops(request).toReversed()) {
    if (hop === undefined || !isTrusted(client)) break
    client = hop
  }
  return client
}

/**
 * Returns the network that identifies a client without a key. For IPv6 this is a /64, because an internet subscriber
 * can use any address in its /64 (RFC 6177).
 */
export const subscriberNetwork = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : IpNetwork.format(IpNetwork.fromAddressUnsafe(address, 64))

const unaddressed: Caller = { id: "address:unknown", scope: {}, quota: {} }

/** Maximum number of client addresses for which the caller is cached. */
const maxCached = 10_000

const byAddress = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  const cached = new Map<string, Caller>()
  const callerAt = (address: NetAddress.IpAddress): Caller => ({
    id: `address:${subscriberNetwork(address)}`,
    scope: {},
    quota: {}
  })
  const callerAtPeer = (text: string): Caller => {
    const known = cached.get(text)
    if (known !== undefined) return known
    const address = parseAddress(text)
    const caller = address === undefined ? unaddressed : callerAt(address)
    if (cached.size >= maxCached) cached.clear()
    cached.set(text, caller)
    return caller
  }
  return (request: IncomingRequest): Caller => {
    if (trusted.length === 0) return callerAtPeer(peer(request))
    const address = parseAddress(peer(request))
    return address === undefined ? unaddressed : callerAt(clientAddress(request, address, trusted))
  }
}

/** The errors that refuse a caller. */
export type CallerRefusal = Overloaded | Unauthorized | QuotaExceeded | UpstreamUnavailable

/** Authorizes requests. */
export interface Serving {
  /**
   * Handles a request with its caller as `CurrentCaller`. Refuses the request while the gateway is overloaded. Call it in
   * the fiber of the request.
   */
  readonly serve: <A, E, R>(
    request: IncomingRequest,
    handle: () => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | CallerRefusal, R>
}

const isCounted = ({ concurrentCalls, requestsPerSecond }: Quota): boolean =>
  requestsPerSecond !== undefined || concurrentCalls !== undefined

/** Records the remaining quota of a caller. */
const note = (record: RequestRecord, { quota }: Caller, standing: Quotas.Standing): void => {
  record.quota = Quotas.rateLimitFields(quota, standing)
}

const uncounted = (caller: Caller): Admitted => ({
  caller,
  provide: (effect) => Effect.provideService(effect, CurrentCaller, caller),
  end: constVoid
})

/**
 * Makes {@link Serving} from the `CallerKeys`, the `Quotas` and the {@link TrustedProxies} of the context.
 *
 * If keys are required, a request without a key, with two different keys, or with an unknown, expired or revoked key
 * fails with `Unauthorized`. A request beyond its caller's quota fails with `QuotaExceeded`, before its body is read.
 */
export const serving: Effect.Effect<Serving, never, CallerKeys | Quotas.Quotas> = Effect.gen(function*() {
  const { check } = yield* CallerKeys
  const quotas = yield* Quotas.Quotas
  const atAddress = byAddress(yield* TrustedProxies)

  const identifyCaller = (
    request: IncomingRequest,
    record: RequestRecord
  ): Effect.Effect<Caller, Unauthorized | UpstreamUnavailable> => {
    const { keyInPath } = request
    if (check === undefined) {
      return keyInPath !== undefined && reserved.has(Redacted.value(keyInPath))
        ? routeAsKey
        : Exit.succeed(atAddress(request))
    }
    const [key, another] = requestKeys(request)
    if (key === undefined) return noKey
    if (another !== undefined) return severalKeys
    record.key = redactKey(key, request.message)
    return check(record.key)
  }

  /** Counts calls of a caller with a quota, and records the remaining quota. */
  const count = (caller: Caller, record: RequestRecord, calls: number): Effect.Effect<Quotas.Counted, QuotaExceeded> =>
    Effect.mapBoth(quotas.count(caller, calls), {
      onFailure: (error) => {
        note(record, caller, { remaining: 0, reset: error.retryAfter * 1000 })
        return error
      },
      onSuccess: (counted) => {
        note(record, caller, counted)
        return counted
      }
    })

  /**
   * Makes an admitted request. The request counts as concurrent until the request and all work that outlives it have
   * ended.
   */
  const admitted = (caller: Caller, record: RequestRecord, { end }: Quotas.Counted): Admitted => {
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
        Effect.provideService(Effect.provideService(effect, CurrentCaller, caller), CurrentKeepCounted, keep),
      countMore: (calls) =>
        // the request can end before the further calls are counted; `keep` keeps the request counted until then
        Effect.acquireUseRelease(
          Effect.sync(keep),
          () => Effect.uninterruptible(Effect.map(count(caller, record, calls), ({ end }) => void ends.push(end))),
          (release) => Effect.sync(release)
        ),
      charge: (requests) => {
        const { concurrentCalls: _, ...quota } = caller.quota
        return Effect.uninterruptible(
          Effect.map(count({ ...caller, quota }, record, requests), ({ end }) => end())
        )
      },
      end: keep()
    }
  }

  /** Identifies the caller of a request, and counts the request against the caller's quota. */
  const admit = Effect.fnUntraced(function*(
    request: IncomingRequest,
    record: RequestRecord,
    counting: { admitted: Admitted | undefined }
  ) {
    // refusing a handshake costs as much as completing it, and the client would retry
    const isRefused = record.load.isBusy && request.upgrade === undefined
    if (record.admitted === undefined && isRefused) return yield* overloaded
    const caller = yield* identifyCaller(request, record)
    record.caller = caller
    // on the admin listener, the guard has already counted the request
    if (record.admitted?.caller.id === caller.id) return record.admitted
    if (!isCounted(caller.quota)) return uncounted(caller)
    // uninterruptible, because a count that is not recorded in `counting` would never end
    return yield* Effect.uninterruptible(
      Effect.map(
        count(caller, record, 1),
        (counted) => counting.admitted = record.admitted = admitted(caller, record, counted)
      )
    )
  })

  /** Serves a request whose caller may have a quota. */
  const serveCounted = <A, E, R>(request: IncomingRequest, handle: () => Effect.Effect<A, E, R>) => {
    const { record } = request
    const counting: { admitted: Admitted | undefined } = { admitted: undefined }
    const served = Effect.flatMap(
      admit(request, record, counting),
      ({ provide }): Effect.Effect<A, E | CallerRefusal, R> => provide(handle())
    )
    return Effect.onExitPrimitive(served, () => {
      counting.admitted?.end()
      return undefined
    })
  }

  const serve: Serving["serve"] = (request, handle) => {
    const { record } = request
    // without keys, no caller has a quota
    const isOpen = check === undefined && request.keyInPath === undefined && record.admitted === undefined
    if (!isOpen || record.load.isBusy) return serveCounted(request, handle)
    const caller = record.caller = atAddress(request)
    return Effect.provideService(handle(), CurrentCaller, caller)
  }

  return { serve }
})
