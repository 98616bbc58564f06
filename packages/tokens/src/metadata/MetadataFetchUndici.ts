/**
 * Fetches metadata documents over undici, with protection against hostile URIs (SSRF).
 *
 * The URI must use https on the default port, without user info, and with a host name rather than an IP address. Every
 * address of the host must be public, and the connection uses the addresses that were checked. Redirects are not
 * followed, and compressed documents are refused. The size, the duration and the number of concurrent fetches are
 * limited.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { promises as dns } from "node:dns"
import { MetadataFetch } from "./MetadataFetch.ts"
import * as MetadataGuard from "./MetadataGuard.ts"
import type { HostAddress } from "./MetadataGuard.ts"
import { MetadataUnavailable } from "./MetadataUnavailable.ts"
import { exchange } from "./UndiciExchange.ts"
import { isPublic } from "./UndiciPublicAddress.ts"

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
 * import { Pipeline, TransportLayers } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const tokens = TokenChainUpstream.layerNoDeps({ addresses: ["http://localhost:8080"] }).pipe(
 *   Layer.provide(MetadataFetchUndici.layer()),
 *   Layer.provide(Pipeline.layer()),
 *   Layer.provide(TransportLayers.layerUndici())
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
