/**
 * Fetches metadata documents over undici, with protection against hostile URIs (SSRF).
 *
 * The URI must use https on the default port, without user info, and with a host name rather than an IP address. Every
 * address of the host must be public, and the connection uses the addresses that were checked. Redirects are not
 * followed, and compressed documents are refused. The size, the duration and the number of concurrent fetches are
 * limited.
 */
import { errorCode } from "@trigate/upstream/transport/HttpTransportUndici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { promises as dns } from "node:dns"
import { BlockList, isIPv4, isIPv6, type LookupFunction } from "node:net"
import { Agent, type Dispatcher } from "undici"
import { MetadataFetch } from "../TokenChain.ts"
import * as MetadataGuard from "./MetadataGuard.ts"
import { type Exchange, type HostAddress, MetadataUnavailable } from "./MetadataGuard.ts"

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
export interface Options extends MetadataGuard.Bounds {
  /** Returns all addresses of a host. Default: DNS. */
  readonly resolve?: (hostname: string) => Effect.Effect<ReadonlyArray<HostAddress>>
}

// not `dns.lookup`: untrusted contracts could name slow hosts, and their lookups would occupy the thread pool that all
// other connections use
const resolveByDns: MetadataGuard.Resolve = (hostname) =>
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
      MetadataGuard.make({ resolve: options.resolve ?? resolveByDns, isPublic, exchange }, options),
      MetadataFetch.of
    )
  )
