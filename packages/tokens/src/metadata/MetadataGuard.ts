/** The rules for fetching documents from untrusted hosts, independent of name resolution and transport. */
import * as Json from "@trigate/domain/encoding/Json"
import * as Cache from "effect/Cache"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { MetadataFetch } from "./MetadataFetch.ts"
import * as MetadataTarget from "./MetadataTarget.ts"
import { MetadataUnavailable } from "./MetadataUnavailable.ts"

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
    Effect.fromResult(MetadataTarget.metadataUrl(uri, bounds.ipfsGateway)).pipe(
      Effect.flatMap((url) => Cache.get(documents, url.href)),
      Effect.tapError((error) => Effect.logDebug("Token metadata is unavailable", { reason: error.reason })),
      Effect.option
    )
  return { fetch }
})
