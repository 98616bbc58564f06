/** The wire over undici's dispatcher: keep-alive pools per origin, the fastest way out of Node. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import { HttpTransport } from "./HttpTransport.ts"
import type { TransportError, TransportRequest, TransportResponse } from "./HttpTransport.ts"
import { UndiciExchange } from "./internal/UndiciExchange.ts"

/** Options of the pools. */
export interface Options {
  /** Sockets per origin; undici's default is unbounded. */
  readonly connections?: number
}

interface Place {
  readonly origin: string
  readonly path: string
}

// an address is the same object on every call, and reading a URL anew costs more than the rest of this module
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
    const exchange = new UndiciExchange(request, resume)
    const { origin, path } = placeOf(request.url)
    dispatcher.dispatch({
      origin,
      path,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
      // undici may put an idempotent request on a second socket by itself: sending again is not the wire's to decide
      idempotent: false,
      // its own timers are coarse and begin anew with each part of the exchange
      headersTimeout: 0,
      bodyTimeout: 0
    }, exchange)
    return Effect.sync(() => exchange.interrupt())
  })

const agent = (options: Options, settings: Agent.Options) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Agent({
        ...(options.connections === undefined ? {} : { connections: options.connections }),
        connect: { timeout: 5_000 },
        // over HTTP/2 undici sends a refused or unanswered stream again by itself
        allowH2: false,
        ...settings
      })
    ),
    (made) => Effect.promise(() => made.destroy())
  )

/** The wire with its own pools, closed with the layer's scope. */
export const layer = (options: Options = {}): Layer.Layer<HttpTransport> =>
  Layer.effect(
    HttpTransport,
    Effect.gen(function*() {
      const pooled = yield* agent(options, { keepAliveTimeout: 10_000 })
      // a connection that was kept may be closed by the other side at the moment of sending; one of these cannot be
      const unshared = yield* agent(options, { pipelining: 0 })
      return HttpTransport.of({
        send: (request) => send(request.onNewConnection === true ? unshared : pooled, request)
      })
    })
  )
