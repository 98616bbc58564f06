/**
 * The fast lane: plain requests go to their route without the router, and their call starts without an effect.
 *
 * A request is plain by its head: a small JSON body, sent to the path of a route as the contract spells it, with no header that
 * could change its answer. No rule of the gateway stands here. The request is observed as any other, each policy is asked by
 * its own step, and where one of them has to wait, the ordinary route goes on with the body that was read.
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Start from "@trigate/domain/Start"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as HttpBody from "./HttpBody.ts"
import type { Handled, Observed } from "./Observe.ts"
import type { Serving } from "./RequestCaller.ts"
import { CurrentRequestFacts } from "./RequestFacts.ts"
import type { RequestFacts } from "./RequestFacts.ts"

/** A route that has plain requests. */
export interface PlainRoute {
  /** Its name in the contract. */
  readonly name: string
  readonly start: (body: Uint8Array, facts: RequestFacts) => Start.Start<HttpServerResponse, never>
  /** The route as the router has it. */
  readonly handled: Handled
}

/** The plain routes of one gateway, by path. */
export class FastLane extends Context.Service<FastLane, {
  readonly routes: Map<string, PlainRoute>
}>()("@trigate/server/FastLane") {}

/** No routes yet; a gateway adds its own. */
export const layer: Layer.Layer<FastLane> = Layer.sync(FastLane, () => FastLane.of({ routes: new Map() }))

/** The headers that change no answer, or that change it in the lane as they do elsewhere. */
const plainHeaders: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "connection",
  "content-length",
  "content-type",
  "forwarded",
  "host",
  // Node's `fetch` sends it; who crosses sites is told by `sec-fetch-site`
  "sec-fetch-mode",
  "user-agent",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "x-request-id"
])

const isPlain = ({ headers }: HttpServerRequest): boolean => {
  for (const name in headers) if (!plainHeaders.has(name)) return false
  return true
}

/** Serves a plain request; undefined for any other. */
export type Lane = (request: HttpServerRequest, fiber: Fiber.Fiber<unknown, unknown>) => Handled | undefined

/** The lane of a gateway. */
export const make = (
  { routes }: FastLane["Service"],
  observe: Observed["observe"],
  { tryCaller }: Serving
): Lane => {
  const served = (
    { handled, name, start }: PlainRoute,
    body: Effect.Effect<Uint8Array, HttpBody.BodyFailure>
  ) =>
    HttpMiddleware.withLoggerDisabled(observe((facts, request, fiber) => {
      const ordinary = Effect.provideService(handled, CurrentRequestFacts, facts)
      const caller = tryCaller(request, facts)
      if (caller === undefined) return ordinary
      const scene = { caller, clock: fiber.getRef(Clock.Clock), context: fiber.context }
      // what is left to do is done as by the route
      const within = (left: Effect.Effect<HttpServerResponse>) =>
        left.pipe(Effect.provideService(CurrentRequestFacts, facts), Effect.provideService(CurrentCaller, caller))
      return Effect.matchEffect(body, {
        // the route says why it cannot be read
        onFailure: () => ordinary,
        onSuccess: (body) => {
          const begin = start(body, facts)
          return Start.orElse(
            scene,
            (scene, done) => {
              const stop = begin(scene, (rest) =>
                done(() => {
                  const left = rest()
                  return Start.isAnswer(left) ? left : within(left)
                }))
              if (stop !== undefined) {
                facts.route = name
                facts.caller = caller
              }
              return stop
            },
            () => Effect.provideService(ordinary, HttpBody.ReadBody, body)
          )
        }
      })
    }))

  return (request, { cache }) => {
    const route = request.method === "POST" ? routes.get(request.url) : undefined
    if (route === undefined || cache.tracer !== undefined || cache.span !== undefined || !isPlain(request)) {
      return undefined
    }
    const body = HttpBody.small(request)
    return body && Effect.interruptible(served(route, body))
  }
}
