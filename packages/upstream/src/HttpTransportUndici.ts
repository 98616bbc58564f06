/** The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import { HttpTransport } from "./HttpTransport.ts"
import type { TransportError, TransportRequest, TransportResponse } from "./HttpTransport.ts"
import { UndiciAttempt } from "./internal/UndiciAttempt.ts"

/** Options of the pools. */
export interface Options {
  /** Sockets per origin; undici's default is unbounded. */
  readonly connections?: number
}

interface Place {
  readonly origin: string
  readonly path: string
}

// every call passes the same object for an address, and parsing a URL costs more than the rest of this module
const places = new WeakMap<Redacted.Redacted, Place>()

const placeOf = (address: Redacted.Redacted): Place => {
  const known = places.get(address)
  if (known !== undefined) return known
  const url = new URL(Redacted.value(address))
  const place = { origin: url.origin, path: `${url.pathname}${url.search}` }
  places.set(address, place)
  return place
}

const send = (dispatcher: Dispatcher, request: TransportRequest): Effect.Effect<TransportResponse, TransportError> =>
  Effect.callback<TransportResponse, TransportError>((resume) => {
    const attempt = new UndiciAttempt(request, resume)
    const { origin, path } = placeOf(request.url)
    dispatcher.dispatch({
      origin,
      path,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
      // undici may send an idempotent request again on a second socket: that is not the transport's to decide
      idempotent: false,
      // undici's own timers are coarse and start again with each part of the response
      headersTimeout: 0,
      bodyTimeout: 0
    }, attempt)
    return Effect.sync(() => attempt.interrupt())
  })

const agent = (options: Options, settings: Agent.Options) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Agent({
        ...(options.connections === undefined ? {} : { connections: options.connections }),
        connect: { timeout: 5_000 },
        // over HTTP/2 undici sends a refused or unanswered stream again
        allowH2: false,
        ...settings
      })
    ),
    (made) => Effect.promise(() => made.destroy())
  )

/** The transport with pools of its own, which close with the layer's scope. */
export const layer = (options: Options = {}): Layer.Layer<HttpTransport> =>
  Layer.effect(
    HttpTransport,
    Effect.gen(function*() {
      const pooled = yield* agent(options, { keepAliveTimeout: 10_000 })
      // the peer may close a pooled connection at the moment of sending; it cannot close one of these
      const unshared = yield* agent(options, { pipelining: 0 })
      return HttpTransport.of({
        send: (request) => send(request.onNewConnection === true ? unshared : pooled, request)
      })
    })
  )
