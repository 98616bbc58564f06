/**
 * Fetches metadata documents over undici, with protection against hostile URIs (SSRF).
 *
 * The URI must use https on the default port, without user info, and with a host name rather than an IP address. Every
 * address of the host must be public, and the connection uses the addresses that were checked. Redirects are not
 * followed, and compressed documents are refused. The size, the duration and the number of concurrent fetches are
 * limited.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import { errorCode } from "@trigate/upstream/transport/HttpTransportUndici"
import * as Cache from "effect/Cache"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { promises as dns } from "node:dns"
import { BlockList, isIPv4, isIPv6, type LookupFunction } from "node:net"
import { Agent, type Dispatcher } from "undici"
import { MetadataFetch } from "../TokenChain.ts"

/** Resolves every host name to the checked addresses, so that a DNS change between check and use has no effect. */
const pinned = ({ addresses: [first, ...others] }: Exchange): LookupFunction => (_hostname, options, callback) =>
  queueMicrotask(() =>
    options.all === true ? callback(null, [first, ...others]) : callback(null, first.address, first.family)
  )

const headers = { accept: "application/json", "accept-encoding": "identity", "user-agent": "trigate" }

const get = (dispatcher: Dispatcher, { maxBytes, url }: Exchange): Effect.Effect<Uint8Array, MetadataUnavailable> =>
  Effect.callback<Uint8Array, MetadataUnavailable>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    const fail = (reason: string) => resume(Effect.fail(new MetadataUnavailable({ reason })))
    const stop = (controller: Dispatcher.DispatchController, reason: string) => {
      fail(reason)
      controller.abort(new Error(reason))
    }
    dispatcher.dispatch({ origin: url.origin, path: `${url.pathname}${url.search}`, method: "GET", headers }, {
      // undici refuses a handler without `onRequestStart`
      onRequestStart() {},
      onResponseStart(controller, status, received) {
        if (status !== 200) stop(controller, `HTTP ${status}`)
        else if ((received["content-encoding"] ?? "identity") !== "identity") stop(controller, "compressed")
      },
      onResponseData(controller, chunk) {
        size += chunk.length
        if (size > maxBytes) stop(controller, `larger than ${maxBytes} bytes`)
        else chunks.push(chunk)
      },
      onResponseEnd: () => resume(Effect.succeed(Buffer.concat(chunks))),
      onResponseError: (_controller, error) => fail(errorCode(error))
    })
  })

/** Sends one request over its own connection, which is then closed. Documents are rare, and are cached for a day. */
export const exchange = (exchange: Exchange): Effect.Effect<Uint8Array, MetadataUnavailable> =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Agent({ connect: { lookup: pinned(exchange) }, connections: 1 })),
    (agent) => get(agent, exchange),
    (agent) => Effect.promise(() => agent.destroy())
  )

const special = new BlockList()
for (
  const [network, prefix] of [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.88.99.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 3]
  ] as const
) special.addSubnet(network, prefix, "ipv4")
// `2001::/23` includes Teredo, ORCHID and benchmarks; `2001:db8::` and `3fff::` are for documentation; `2002::` is
// 6to4, which encodes any IPv4 address
for (const [network, prefix] of [["2001::", 23], ["2001:db8::", 32], ["2002::", 16], ["3fff::", 20]] as const) {
  special.addSubnet(network, prefix, "ipv6")
}

// all other IPv6 ranges are loopback, link-local, unique local, multicast, mapped or translated IPv4, or unassigned
const globalUnicast = new BlockList()
globalUnicast.addSubnet("2000::", 3, "ipv6")

/** Returns whether an address is public; `false` if it is malformed. */
export const isPublic = ({ address, family }: HostAddress): boolean =>
  family === 4
    ? isIPv4(address) && !special.check(address, "ipv4")
    : isIPv6(address) && globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6")

/** The limits for fetching documents, and the function that resolves host names. */
export interface Options extends Bounds {
  /** Returns all addresses of a host. Default: DNS. */
  readonly resolve?: (hostname: string) => Effect.Effect<ReadonlyArray<HostAddress>>
}

// not `dns.lookup`: untrusted contracts could name slow hosts, and their lookups would occupy the thread pool that all
// other connections use
const resolveByDns: Resolve = (hostname) =>
  Effect.suspend(() => {
    const resolver = new dns.Resolver({ timeout: 1_500, tries: 1 })
    const addresses = (family: HostAddress["family"], query: () => Promise<ReadonlyArray<string>>) =>
      Effect.tryPromise({ try: query, catch: () => new MetadataUnavailable({ reason: "the name does not resolve" }) })
        .pipe(
          Effect.map((found) => found.map((address): HostAddress => ({ address, family }))),
          // most hosts have addresses of only one family
          Effect.orElseSucceed((): ReadonlyArray<HostAddress> => [])
        )
    return Effect.all([
      addresses(4, () => resolver.resolve4(hostname)),
      addresses(6, () => resolver.resolve6(hostname))
    ], { concurrency: 2 }).pipe(
      Effect.map((found) => found.flat()),
      Effect.onInterrupt(() => Effect.sync(() => resolver.cancel()))
    )
  })

/**
 * Provides `MetadataFetch` over undici, with protection against hostile URIs and with its own cache.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { MetadataFetchUndici, TokenChainUpstream } from "@trigate/tokens"
 * import { HttpTransport, Pipeline } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const tokens = TokenChainUpstream.layerNoDeps({ addresses: ["http://localhost:8080"] }).pipe(
 *   Layer.provide(MetadataFetchUndici.layer()),
 *   Layer.provide(Pipeline.layer()),
 *   Layer.provide(HttpTransport.layerUndici())
 * )
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<MetadataFetch> =>
  Layer.effect(
    MetadataFetch,
    Effect.map(
      make({ resolve: options.resolve ?? resolveByDns, isPublic, exchange }, options),
      MetadataFetch.of
    )
  )

/**
 * A metadata document is unavailable: its URI is not permitted, or the host did not return a valid document. `reason`
 * contains no secrets.
 */
export class MetadataUnavailable extends Schema.TaggedError<MetadataUnavailable>()("MetadataUnavailable", {
  reason: Schema.String
}) {}

const MAX_URI_LENGTH = 2048
const ipfs = /^ipfs:\/\/(?:ipfs\/)?(?<path>(?<cid>[A-Za-z0-9]{46,128})(?:\/[^?#]*)?)$/u

const refused = (reason: string): Result.Result<never, MetadataUnavailable> =>
  Result.fail(new MetadataUnavailable({ reason }))

const parseUrl = Option.liftThrowable((text: string) => new URL(text))

const throughGateway = (
  cid: string,
  path: string,
  gateway: string | undefined
): Result.Result<string, MetadataUnavailable> => {
  if (gateway === undefined) return refused("no IPFS gateway is configured")
  const base = gateway.endsWith("/") ? gateway : `${gateway}/`
  // with dot segments, the path could leave the document's directory on the gateway
  return Option.exists(parseUrl(`${base}${path}`), (url) => url.href.startsWith(`${base}${cid}`))
    ? Result.succeed(`${base}${path}`)
    : refused("the path leaves the IPFS document")
}

/**
 * Returns whether the host of a parsed URL is an IP address. A parsed URL contains IPv4 addresses as dotted decimals,
 * and IPv6 addresses in brackets.
 */
const isNumeric = (host: string): boolean => host.startsWith("[") || /^[0-9.]+$/u.test(host)

/**
 * Returns the URL to fetch for a metadata URI.
 *
 * Accepts only https on port 443, with a host name (never an address) and without user info. For `ipfs://`, appends the
 * content ID to `ipfsGateway` (`https://gateway.example/ipfs/`).
 */
export const metadataUrl = (uri: string, ipfsGateway: string | undefined): Result.Result<URL, MetadataUnavailable> => {
  if (uri.length > MAX_URI_LENGTH) return refused("the URI is too long")
  const groups = ipfs.exec(uri)?.groups
  const https = groups?.["cid"] !== undefined && groups["path"] !== undefined
    ? throughGateway(groups["cid"], groups["path"], ipfsGateway)
    : Result.succeed(uri)
  return Result.flatMap(https, (text) => {
    const parsed = parseUrl(text)
    if (Option.isNone(parsed)) return refused("not a URL")
    const url = parsed.value
    if (url.protocol !== "https:") return refused("not https")
    if (url.username !== "" || url.password !== "") return refused("user info in the URL")
    if (url.port !== "") return refused("a port other than 443")
    if (isNumeric(url.hostname)) return refused("the host is an address, not a name")
    if (!url.hostname.includes(".")) return refused("the host is a local name")
    return Result.succeed(url)
  })
}

/** One address of a host. */
export interface HostAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Returns all addresses of a host name. */
export type Resolve = (hostname: string) => Effect.Effect<ReadonlyArray<HostAddress>, MetadataUnavailable>

/**
 * A GET request that is sent only to the given addresses. Redirects are not followed, and at most `maxBytes` of the
 * response are read.
 */
export interface Exchange {
  readonly url: URL
  readonly addresses: readonly [HostAddress, ...ReadonlyArray<HostAddress>]
  readonly maxBytes: number
}

/** The functions that resolve a host, check its addresses and send the request. */
export interface Parts {
  readonly resolve: Resolve
  readonly isPublic: (address: HostAddress) => boolean
  readonly exchange: (exchange: Exchange) => Effect.Effect<Uint8Array, MetadataUnavailable>
}

/** The limits for fetching documents. */
export interface Bounds {
  /**
   * The gateway for `ipfs://` documents, such as `https://gateway.example/ipfs/`. Default: such documents are not
   * fetched.
   */
  readonly ipfsGateway?: string
  /** Timeout of one document, from name resolution to the last byte. Default: 3 seconds. */
  readonly deadline?: Duration.Input
  /** Maximum size of one document. Default: 64 KiB. */
  readonly maxBytes?: number
  /** Maximum number of cached documents. A document is cached for a day, a failure for a minute. Default: 256. */
  readonly capacity?: number
}

const CONCURRENCY = 16
const decoder = new TextDecoder()

const unavailable = (reason: string) => Effect.fail(new MetadataUnavailable({ reason }))

const parse = (bytes: Uint8Array): Effect.Effect<unknown, MetadataUnavailable> =>
  Result.match(Json.parse(decoder.decode(bytes)), {
    onFailure: () => unavailable("not JSON"),
    onSuccess: (value) =>
      Predicate.isObject(value) && !Array.isArray(value) ? Effect.succeed(value) : unavailable("not a JSON object")
  })

/** Makes a `MetadataFetch` service that fetches only from public hosts, within the given limits. */
export const make = Effect.fnUntraced(function*(parts: Parts, bounds: Bounds) {
  const deadline = Duration.fromInputUnsafe(bounds.deadline ?? "3 seconds")
  const maxBytes = bounds.maxBytes ?? 64 * 1024
  const permits = yield* Semaphore.make(CONCURRENCY)

  const load = Effect.fnUntraced(
    function*(href: string) {
      const url = new URL(href)
      const [first, ...others] = yield* parts.resolve(url.hostname)
      if (first === undefined) return yield* unavailable("the host has no address")
      // refuses if any address is private, because the owner of the host name could choose which address is used
      if (![first, ...others].every(parts.isPublic)) return yield* unavailable("the host is not public")
      return yield* parse(yield* parts.exchange({ url, addresses: [first, ...others], maxBytes }))
    },
    // an untrusted document must not fail the call, not even because of a defect of this program
    Effect.catchDefect((defect) =>
      Effect.andThen(Effect.logError("Fetching token metadata failed unexpectedly", defect), unavailable("defect"))
    ),
    permits.withPermits(1),
    Effect.timeoutOrElse({ duration: deadline, orElse: () => unavailable("out of time") })
  )

  const documents = yield* Cache.makeWith(load, {
    capacity: bounds.capacity ?? 256,
    timeToLive: (exit) => Exit.isSuccess(exit) ? "1 day" : "1 minute"
  })

  const fetch: MetadataFetch["Service"]["fetch"] = (uri) =>
    Effect.fromResult(metadataUrl(uri, bounds.ipfsGateway)).pipe(
      Effect.flatMap((url) => Cache.get(documents, url.href)),
      Effect.tapError((error) => Effect.logDebug("Token metadata is unavailable", { reason: error.reason })),
      Effect.option
    )
  return { fetch }
})
