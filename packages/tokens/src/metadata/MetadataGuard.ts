/** The rules for fetching documents from untrusted hosts, independent of name resolution and transport. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Cache from "effect/Cache"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { MetadataFetch } from "../TokenChain.ts"

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
