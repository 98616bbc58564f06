/** A transport that answers from a script and keeps what was sent. */
import type { TransportError, TransportRequest, TransportResponse } from "@trigate/upstream/HttpTransport"
import { HttpTransport } from "@trigate/upstream/HttpTransport"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** One request as it left. */
export interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

/** An answer with a status, a body, and a content type that is JSON when not given. */
export const answer = (
  status: number,
  body: string,
  headers: { readonly [name: string]: string } = {}
): TransportResponse => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: new TextEncoder().encode(body)
})

/** Calls over a transport that answers each request by what was sent. */
export const scripted = (
  react: (sent: Sent) => Effect.Effect<TransportResponse, TransportError>
): { readonly sent: Array<Sent>; readonly calls: Layer.Layer<Pipeline.Pipeline> } => {
  const sent: Array<Sent> = []
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, headers, method, url }: TransportRequest) =>
        Effect.suspend(() => {
          const request = { method, url: Redacted.value(url), headers, body: new TextDecoder().decode(body) }
          sent.push(request)
          return react(request)
        })
    })
  )
  return { sent, calls: Pipeline.layer({ attempts: 1 }).pipe(Layer.provide(transport)) }
}
