/** The connection to a gateway: its URL and keys, over any Effect `HttpClient`. */
import { sourcesHeader } from "@trigate/domain/candles/Candle"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Stream from "effect/Stream"

/** The label of the gateway in responses and errors. */
export const label = "gateway"

/** The URL and the keys of the gateway. */
export interface Options {
  /** The gateway's URL. It may have a path and a trailing slash. In a browser, `""` means the page's own origin. */
  readonly baseUrl: string | URL
  /**
   * The endpoint key of the gateway's node routes. If set, the calls use the node routes instead of the gateway's own
   * routes.
   */
  readonly endpointKey?: Redacted.Redacted
  /**
   * Whether the gateway must be a sandbox. If so, a gateway with upstreams refuses each request, and sends nothing.
   * Default: false.
   */
  readonly sandboxOnly?: boolean
  /** The caller's key, sent as `Authorization: Bearer` with each request. Default: none. */
  readonly key?: Redacted.Redacted
}

/** A response with status 200, whose body is streamed, or the complete response with any other status. */
export type Opened =
  | {
    readonly refusal: undefined
    readonly stream: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>
  }
  | { readonly refusal: UpstreamResponse.UpstreamResponse; readonly stream?: never }

/**
 * The requests over a connection. `post` (JSON text) and `get` return the complete response; `open` streams a response
 * of any length.
 */
export interface Routes {
  readonly post: (
    path: string,
    body: string
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, HttpClientError.HttpClientError>
  readonly get: (path: string) => Effect.Effect<UpstreamResponse.UpstreamResponse, HttpClientError.HttpClientError>
  readonly open: (path: string) => Effect.Effect<Opened, HttpClientError.HttpClientError>
}

/**
 * The connection to a gateway. The calls of this package require only this service.
 *
 * Provided by `Connection.layerFetch`, `Connection.layer` or `Connection.layerConfig`.
 *
 * @since 0.1.0
 * @category services
 */
export class Connection extends Context.Service<Connection, {
  /** The routes of the chains: the gateway's own routes, or the node routes if an endpoint key is configured. */
  readonly chains: Routes
  /** The gateway's own routes, independent of an endpoint key. */
  readonly own: Routes
  /** Returns a unique ID for a JSON-RPC call over this connection. */
  readonly nextId: Effect.Effect<number>
}>()("@trigate/client/Connection") {}

/** Returns the label of the upstream whose response a gateway relays; the gateway's own label if it names none. */
const namedUpstream = (header: string | undefined): string =>
  header !== undefined && /^[a-z0-9-]{1,32}$/u.test(header) ? header : label

const relayed = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(response.arrayBuffer, (buffer) => {
    const retryAfter = response.headers["retry-after"]
    const candles = response.headers[sourcesHeader]
    return UpstreamResponse.make({
      upstream: namedUpstream(response.headers[UpstreamResponse.upstreamHeader]),
      status: response.status,
      contentType: response.headers["content-type"] ?? "",
      body: new Uint8Array(buffer),
      signer: UpstreamResponse.signerIn(response.headers),
      ...(candles === undefined ? {} : { candles }),
      // a date in the header is ignored: it is useless without the server's clock
      ...(retryAfter !== undefined && /^[0-9]{1,6}$/u.test(retryAfter) ? { retryAfter: Number(retryAfter) } : {})
    })
  })

/**
 * Sends a request to the configured URL and never follows a redirect.
 *
 * `fetch` follows redirects by default: after a 307 it would send a body again, including signed content.
 */
const execute = (client: HttpClient.HttpClient, request: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(
    Effect.serviceOption(FetchHttpClient.RequestInit),
    (given) =>
      Effect.provideService(client.execute(request), FetchHttpClient.RequestInit, {
        ...Option.getOrUndefined(given),
        redirect: "manual"
      })
  )

const routesAt = (client: HttpClient.HttpClient, base: string): Routes => {
  const send = (request: HttpClientRequest.HttpClientRequest) => Effect.flatMap(execute(client, request), relayed)
  return {
    post: (path, body) =>
      send(HttpClientRequest.bodyText(HttpClientRequest.post(`${base}${path}`), body, "application/json")),
    get: (path) => send(HttpClientRequest.get(`${base}${path}`)),
    open: (path) =>
      Effect.flatMap(
        execute(client, HttpClientRequest.get(`${base}${path}`)),
        (response): Effect.Effect<Opened, HttpClientError.HttpClientError> =>
          response.status === 200
            ? Effect.succeed({ refusal: undefined, stream: response.stream })
            : Effect.map(relayed(response), (refusal) => ({ refusal }))
      )
  }
}

// the HTTP client's own spans would contain the whole URL, including the key
const untraced = Effect.provideService(HttpClient.TracerDisabledWhen, constTrue)

const keyedAt = (client: HttpClient.HttpClient, base: string, key: Redacted.Redacted): Routes => {
  const { get, open, post } = routesAt(client, `${base}/${encodeURIComponent(Redacted.value(key))}`)
  return {
    post: (path, body) => untraced(post(path, body)),
    get: (path) => untraced(get(path)),
    open: (path) => untraced(open(path))
  }
}

/** Makes the connection to a gateway over an HTTP client. Sends nothing yet. */
export const make = (
  http: HttpClient.HttpClient,
  { baseUrl, endpointKey, key, sandboxOnly = false }: Options
): Connection["Service"] => {
  const base = String(baseUrl).replace(/\/+$/u, "")
  const guarded = sandboxOnly
    ? HttpClient.mapRequest(http, HttpClientRequest.setHeader("x-trigate-sandbox", "true"))
    : http
  const client = key === undefined ? guarded : HttpClient.mapRequest(guarded, HttpClientRequest.bearerToken(key))
  const own = routesAt(client, base)
  let lastId = 0
  return {
    own,
    chains: endpointKey === undefined ? own : keyedAt(client, base, endpointKey),
    nextId: Effect.sync(() => lastId += 1)
  }
}

/**
 * Provides the connection to the gateway at `baseUrl`, over the `HttpClient` of the context.
 *
 * The connection adds neither a deadline nor retries: wrap reads in `Effect.timeout` and `Effect.retry`. Do not use an
 * `HttpClient` that retries by itself: it would also send signed actions again.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Connection, never, HttpClient.HttpClient> =>
  Layer.effect(Connection, Effect.map(HttpClient.HttpClient, (client) => make(client, options)))

/**
 * Provides {@link layer} over Effect's fetch client, for browsers, Node, Bun, Deno and workers.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Connection, Health } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const gateway = Connection.layerFetch({ baseUrl: "http://localhost:8080" })
 *
 * const program = Effect.flatMap(Health.ready(), ({ status }) => Console.log(status))
 *
 * await Effect.runPromise(Effect.provide(program, gateway))
 * ```
 * ```text
 * ready
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<Connection> =>
  Layer.provide(layer(options), FetchHttpClient.layer)

/**
 * Provides {@link layer} with options from a `Config`. Fails with `ConfigError` if a required option is missing or an
 * option is malformed.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Config, ConfigProvider, Console, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 *
 * const gateway = Connection.layerConfig({ baseUrl: Config.String("GATEWAY_URL") }).pipe(
 *   Layer.provide(FetchHttpClient.layer),
 *   Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_URL: "http://localhost:8080" })))
 * )
 *
 * const program = Effect.flatMap(Evm.chainId(), Console.log)
 *
 * await Effect.runPromise(Effect.provide(program, gateway))
 * ```
 * ```text
 * 999n
 * ```
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Connection, Config.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))
