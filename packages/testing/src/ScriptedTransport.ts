/**
 * An `HttpTransport` that responds from a script and records requests. URLs are stored unredacted, because they contain
 * no real keys.
 */
import { local } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport, TransportError } from "@trigate/upstream/transport/HttpTransport"
import type { TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** A request that was sent. */
export interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

/** The result of a request. */
export type Reaction = TransportResponse | TransportError | Effect.Effect<TransportResponse, TransportError>

/** Makes a response. The content type is JSON if the headers do not set one. */
export const response = (
  status: number,
  body: string,
  headers: { readonly [name: string]: string } = {}
): TransportResponse => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: Utf8.encode(body)
})

/** The error of a request that was not sent. */
export const unreachable = new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" })

/** The error of a broken connection: the request might have been sent. */
export const broken = new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })

// without rate limits and without ejection of failing upstream URLs: tests of these features make their own pipeline
const pipeline = (options: Pipeline.Options) =>
  Pipeline.layerNoDeps({ owner: local, attempts: 1, ...options }).pipe(
    Layer.provide([RateLimiter.layerUnlimited, OutlierDetection.layerAlways, ResponseCache.layer()])
  )

const runReaction = (reaction: Reaction): Effect.Effect<TransportResponse, TransportError> => {
  if ("sent" in reaction) return Effect.fail(reaction)
  return "status" in reaction ? Effect.succeed(reaction) : reaction
}

/**
 * Makes a pipeline over a transport with the given reaction to each request. The pipeline makes one attempt at each
 * upstream URL. Returns the pipeline, the transport and the recorded requests.
 */
export const make = (react: (sent: Sent) => Reaction, options: Pipeline.Options = {}) => {
  const sent: Array<Sent> = []
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, headers, method, url }) =>
        Effect.suspend(() => {
          const request = { method, url: Redacted.value(url), headers, body: new TextDecoder().decode(body) }
          sent.push(request)
          return runReaction(react(request))
        })
    })
  )
  return { sent, transport, layer: pipeline(options).pipe(Layer.provide(transport)) }
}
