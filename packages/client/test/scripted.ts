/** A client over an `HttpClient` in this process that answers as told and keeps every request. */
import * as GatewayClient from "@trigate/client/GatewayClient"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export const baseUrl = "https://gateway.example/base"

/** One request as it would have gone out. */
export interface Sent {
  readonly method: string
  readonly url: string
  readonly type: string | undefined
  readonly body: string
}

/** An answer, or how the exchange breaks. */
export type Scripted =
  | { readonly status?: number; readonly type?: string; readonly retryAfter?: string; readonly body: string }
  | "refused"
  | "half a body"
  | "not encodable"

const halfABody = () => {
  let pulled = 0
  return new ReadableStream({
    pull: (controller) => {
      pulled += 1
      if (pulled === 1) controller.enqueue(new TextEncoder().encode(`{"status":"ok"`))
      else controller.error(new TypeError("terminated"))
    }
  })
}

const responseOf = (scripted: Exclude<Scripted, "refused" | "not encodable">): Response =>
  scripted === "half a body"
    ? new Response(halfABody(), { status: 200, headers: { "content-type": "application/json" } })
    : new Response(scripted.body, {
      status: scripted.status ?? 200,
      headers: {
        "content-type": scripted.type ?? "application/json",
        ...(scripted.retryAfter === undefined ? {} : { "retry-after": scripted.retryAfter })
      }
    })

const textOf = ({ body }: HttpClientRequest.HttpClientRequest): string =>
  body._tag === "Uint8Array"
    ? new TextDecoder().decode(body.body)
    : body._tag === "Empty"
    ? ""
    : `not text: ${body._tag}`

/** Runs `use` with a client; the answer is made from each request. */
export const withClient = <A, E>(
  answer: (sent: Sent) => Scripted,
  use: (client: GatewayClient.GatewayClient["Service"], sent: ReadonlyArray<Sent>) => Effect.Effect<A, E>,
  options: { readonly baseUrl?: string | URL; readonly endpointKey?: string } = {}
): Effect.Effect<A, E> => {
  const sent: Array<Sent> = []
  const http = HttpClient.make((request, url) => {
    const one: Sent = {
      method: request.method,
      url: url.href,
      type: request.headers["content-type"],
      body: textOf(request)
    }
    sent.push(one)
    const scripted = answer(one)
    switch (scripted) {
      case "refused":
        return Effect.fail(
          new HttpClientError.HttpClientError({
            reason: new HttpClientError.TransportError({ request, cause: new TypeError("fetch failed") })
          })
        )
      case "not encodable":
        return Effect.fail(
          new HttpClientError.HttpClientError({ reason: new HttpClientError.EncodeError({ request }) })
        )
      default:
        return Effect.succeed(HttpClientResponse.fromWeb(request, responseOf(scripted)))
    }
  })
  const layer = GatewayClient.layer({
    baseUrl: options.baseUrl ?? baseUrl,
    ...(options.endpointKey === undefined ? {} : { endpointKey: Redacted.make(options.endpointKey) })
  })
  return Effect.provide(
    Effect.flatMap(GatewayClient.GatewayClient, (client) => use(client, sent)),
    Layer.provide(layer, Layer.succeed(HttpClient.HttpClient, http))
  )
}

/** The raw text of the id of a JSON-RPC request. */
export const idOf = ({ body }: Sent): string => /"id":([0-9]+)/u.exec(body)?.[1] ?? "null"
