/**
 * What the gateway does around every request, whether a route takes it or not.
 *
 * It gives the request an id, counts it as in flight, reads `Cache-Control` and answers preflights. It marks the answer
 * with its headers, counts it in the metrics and writes it to the access log. A request that no route takes, and one that
 * ends in a fault of the gateway, is answered with a problem document.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Freshness, MaxAge } from "@trigate/upstream/ResponseCache"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type { unhandled } from "effect/Types"
import * as Cors from "./Cors.ts"
import * as HttpBody from "./HttpBody.ts"
import * as Pipelining from "./Pipelining.ts"
import * as RequestFacts from "./RequestFacts.ts"
import * as RequestSpan from "./RequestSpan.ts"
import * as Unmatched from "./Unmatched.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the response is Node's own
import { ServerResponse } from "node:http"

/**
 * The count of requests in flight, for a graceful shutdown.
 *
 * Draining turns readiness off and waits for the requests in flight. Whoever drains has to close the server afterwards.
 */
export class Drain extends Context.Service<Drain, {
  /** Counts a request as in flight while it runs. */
  readonly track: <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly isDraining: () => boolean
  /** Waits until no request is in flight that is so now; later ones do not count. */
  readonly current: Effect.Effect<void>
  /** Turns readiness off and waits until nothing is in flight, at most `maxWait`. */
  readonly drain: (maxWait: Duration.Input) => Effect.Effect<void>
}>()("@trigate/server/Observe/Drain") {}

/** One count for the process. */
export const layerDrain: Layer.Layer<Drain> = Layer.effect(
  Drain,
  Effect.gen(function*() {
    const idle = yield* Deferred.make<void>()
    let inFlight = 0
    let draining = false
    const settle = () => {
      if (draining && inFlight === 0) Deferred.doneUnsafe(idle, Effect.void)
    }
    const begin = () => {
      const over = Deferred.makeUnsafe<void>()
      const round = {
        count: 0,
        isLast: true,
        over,
        settle: () => {
          if (!round.isLast && round.count === 0) Deferred.doneUnsafe(over, Effect.void)
        },
        leave: () => {
          inFlight--
          round.count--
          round.settle()
          settle()
          return Effect.void
        }
      }
      return round
    }
    let round = begin()
    return Drain.of({
      track: (request) =>
        Effect.suspend(() => {
          inFlight++
          round.count++
          return Effect.onExit(request, round.leave)
        }),
      current: Effect.suspend(() => {
        const last = round
        round = begin()
        last.isLast = false
        last.settle()
        return Deferred.await(last.over)
      }),
      isDraining: () => draining,
      drain: (maxWait) =>
        Effect.suspend(() => {
          draining = true
          settle()
          return Effect.timeoutOrElse(Deferred.await(idle), { duration: maxWait, orElse: () => Effect.void })
        })
    })
  })
)

/** How a gateway treats its requests. */
export interface Options {
  /** Whether the sandbox answers; every answer then says so. */
  readonly sandbox: boolean
  /** The origins whose pages may read answers; none when not given. */
  readonly origins?: Cors.Origins
  /** The path before the gateway's routes, where they are mounted beside others; none when not given. */
  readonly prefix?: `/${string}`
}

const plainId = /^[A-Za-z0-9._-]{1,64}$/u

// the caller's id where it is plain, else a random prefix of this process and a count
const makeIds = Effect.map(Random.nextIntBetween(0, 36 ** 6), (seed) => {
  const prefix = seed.toString(36).padStart(6, "0")
  let count = 0
  return (given: string | undefined): string =>
    given !== undefined && plainId.test(given) ? given : `${prefix}-${(count++).toString(36)}`
})

const notCached = /(?:^|[\s,])(?:no-cache|no-store|max-age=0+)(?:$|[\s,;])/iu
const someAge = /(?:^|[\s,])max-age=(?<seconds>[0-9]{1,9})(?:$|[\s,;])/iu

/** Provides the freshness that a caller's `Cache-Control` asks for (RFC 9111, section 5.2.1). */
const withFreshness = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  cacheControl: string | undefined
): Effect.Effect<A, E, R> => {
  if (cacheControl === undefined) return effect
  if (notCached.test(cacheControl)) return Effect.provideService(effect, Freshness, "none")
  const seconds = someAge.exec(cacheControl)?.groups?.["seconds"]
  if (seconds === undefined) return effect
  return effect.pipe(Effect.provideService(Freshness, "block"), Effect.provideService(MaxAge, Number(seconds)))
}

const isRouteNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const titles: { readonly [status: number]: string } = { 413: "Payload Too Large" }

const withBody = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  response.status >= 400 && response.body._tag === "Empty"
    ? HttpBody.plainProblem(response.status, titles[response.status] ?? "Error", "The request was refused")
    : response

const internalError = HttpBody.plainProblem(
  500,
  "Internal Server Error",
  "A fault of the gateway; the log has its id"
)

const make = Effect.fnUntraced(function*({ origins, prefix = "/", sandbox }: Options) {
  const unmatched = Unmatched.make(prefix)
  const { write } = yield* RequestFacts.AccessLog
  const drain = yield* Drain
  const idOf = yield* makeIds
  const cors = origins === undefined ? undefined : Cors.make(origins)

  const marked = (response: HttpServerResponse.HttpServerResponse, id: string, age: number | undefined) => {
    const identified = HttpServerResponse.setHeader(response, "x-request-id", id)
    const aged = age === undefined ? identified : HttpServerResponse.setHeader(identified, "age", String(age))
    const labelled = sandbox ? HttpServerResponse.setHeader(aged, "x-trigate-sandbox", "true") : aged
    // a connection that is kept alive would delay the end of the process
    return drain.isDraining() ? HttpServerResponse.setHeader(labelled, "connection", "close") : labelled
  }

  const unanswered = (cause: Cause.Cause<unhandled>, request: HttpServerRequest.HttpServerRequest, id: string) => {
    if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    return cause.reasons.some((reason) => reason._tag === "Fail" && isRouteNotFound(reason.error))
      ? Effect.succeed(unmatched(request))
      : Effect.as(
        Effect.annotateLogs(Effect.logError("The request ended in a fault of the gateway", cause), { id }),
        internalError
      )
  }

  return (app: Effect.Effect<HttpServerResponse.HttpServerResponse, unhandled>) => {
    return drain.track(Effect.withFiber((fiber) => {
      const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const response = NodeHttpServerRequest.toServerResponse(request)
      if (
        response instanceof ServerResponse && response.socket === null &&
        !Pipelining.admits(NodeHttpServerRequest.toIncomingMessage(request).socket, response)
      ) return Effect.interrupt
      const clock = fiber.getRef(Clock.Clock)
      const start = clock.currentTimeMillisUnsafe()
      const facts = RequestFacts.make()
      const id = idOf(request.headers["x-request-id"])
      const answered = (response: HttpServerResponse.HttpServerResponse) => {
        const own = marked(withBody(response), id, facts.age)
        const answer = cors === undefined ? own : cors.mark(request, own)
        const time = clock.currentTimeMillisUnsafe()
        const milliseconds = time - start
        const { status } = answer
        RequestFacts.count(fiber.context, facts, status, milliseconds)
        if (facts.span !== undefined) {
          RequestSpan.end(facts.span, fiber, { id, status, error: RequestFacts.errorOf(facts) })
        }
        write?.({
          time,
          id,
          method: request.method,
          route: facts.route,
          status,
          milliseconds,
          operations: facts.operations.map(({ operation }) => operation),
          error: RequestFacts.errorOf(facts),
          traceId: facts.span?.traceId
        })
        return Effect.succeed(answer)
      }
      const preflight = cors?.preflight(request)
      if (preflight !== undefined) return answered(preflight)
      const handled = withFreshness(app, request.headers["cache-control"])
      return Effect.matchCauseEffect(Effect.provideService(handled, RequestFacts.CurrentRequestFacts, facts), {
        onFailure: (cause) => Effect.flatMap(unanswered(cause, request, id), answered),
        onSuccess: answered
      })
    }))
  }
})

/** The middleware, for an `HttpRouter`. */
export const layer = (options: Options) => HttpRouter.middleware(make(options), { global: true })
