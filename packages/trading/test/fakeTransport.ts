/** A transport that records what would leave and answers as told; URLs are shown, they hold no real key. */
import * as Utf8 from "@trigate/domain/Utf8"
import { HttpTransport, TransportError } from "@trigate/upstream/HttpTransport"
import type { TransportResponse } from "@trigate/upstream/HttpTransport"
import * as OutlierDetection from "@trigate/upstream/OutlierDetection"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as RateLimiter from "@trigate/upstream/RateLimiter"
import * as ResponseCache from "@trigate/upstream/ResponseCache"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export interface Sent {
  readonly method: string
  readonly url: string
  readonly body: string
}

export const answer = (status: number, body: string, contentType = "application/json"): TransportResponse => ({
  status,
  headers: { "content-type": contentType },
  body: Utf8.encode(body)
})

export const unreachable = new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" })
export const broken = new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })

// no ejection and no rate limit: a test about those provides its own
const calls = Pipeline.layerNoDeps({ attempts: 1 }).pipe(
  Layer.provide([RateLimiter.layerUnlimited, OutlierDetection.layerAlways, ResponseCache.layer()])
)

export const make = (react: (sent: Sent) => TransportResponse | TransportError) => {
  const sent: Array<Sent> = []
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, method, url }) =>
        Effect.suspend(() => {
          const request = { method, url: Redacted.value(url), body: new TextDecoder().decode(body) }
          sent.push(request)
          const reaction = react(request)
          return "sent" in reaction ? Effect.fail(reaction) : Effect.succeed(reaction)
        })
    })
  )
  return { sent, layer: calls.pipe(Layer.provide(transport)) }
}
