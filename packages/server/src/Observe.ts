/**
 * What happens around every request: decompression, its id, the count of those in flight, headers of ours, the origins of
 * pages, metrics, the access log, and a typed body for whatever has none.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { unhandled } from "effect/Types"
import * as AccessLog from "./AccessLog.ts"
import * as AskedFreshness from "./AskedFreshness.ts"
import * as Cors from "./Cors.ts"
import { Drain } from "./Drain.ts"
import * as RequestBody from "./RequestBody.ts"
import * as RequestFacts from "./RequestFacts.ts"
import { RequestIds } from "./RequestIds.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as Responses from "./Responses.ts"
import * as Unmatched from "./Unmatched.ts"

/** Options of the surroundings. */
export interface Options {
  /** Whether the sandbox is behind, which every answer then says. */
  readonly sandbox: boolean
  /** The origins whose pages may read answers; none when not given. */
  readonly origins?: Cors.Origins
}

const isRouteNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const titles: { readonly [status: number]: string } = { 413: "Payload Too Large", 415: "Unsupported Media Type" }

const withBody = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  response.status >= 400 && response.body._tag === "Empty"
    ? Responses.plainProblem(response.status, titles[response.status] ?? "Error", "The request was refused")
    : response

const internalError = Responses.plainProblem(500, "Internal Server Error", "A fault of the gateway; the log has its id")

const entryOf = (
  id: string,
  method: string,
  facts: RequestFacts.RequestFacts,
  status: number,
  milliseconds: number
): AccessLog.Entry => ({
  id,
  method,
  route: facts.route,
  status,
  milliseconds,
  operations: facts.operations.map((each) => each.operation),
  error: facts.error ?? facts.operations.find((each) => each.outcome !== "ok")?.outcome
})

const make = Effect.fnUntraced(function*(options: Options) {
  const log = yield* AccessLog.AccessLog
  const drain = yield* Drain
  const ids = yield* RequestIds
  const cors = options.origins === undefined ? Cors.denied : Cors.make(options.origins)
  const decompression = HttpMiddleware.decompression({ maxDecompressedSize: RequestBody.bodyLimit })

  const marked = (response: HttpServerResponse.HttpServerResponse, id: string, age: number | undefined) => {
    const identified = HttpServerResponse.setHeader(response, "x-request-id", id)
    const named = age === undefined ? identified : HttpServerResponse.setHeader(identified, "age", String(age))
    const told = options.sandbox ? HttpServerResponse.setHeader(named, "x-trigate-sandbox", "true") : named
    // a connection that is kept alive would hold up the end of the process
    return drain.isDraining() ? HttpServerResponse.setHeader(told, "connection", "close") : told
  }

  const unanswered = (cause: Cause.Cause<unhandled>, request: HttpServerRequest.HttpServerRequest, id: string) => {
    if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    return cause.reasons.some((reason) => reason._tag === "Fail" && isRouteNotFound(reason.error))
      ? Effect.succeed(Unmatched.response(request))
      : Effect.as(
        Effect.annotateLogs(Effect.logError("The request ended in a fault of the gateway", cause), { id }),
        internalError
      )
  }

  return (app: Effect.Effect<HttpServerResponse.HttpServerResponse, unhandled>) => {
    const decompressed = decompression(app)
    return drain.track(Effect.withFiber((fiber) => {
      const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const clock = fiber.getRef(Clock.Clock)
      const start = clock.currentTimeMillisUnsafe()
      const facts = RequestFacts.make()
      const id = ids.of(request.headers["x-request-id"])
      const answered = (response: HttpServerResponse.HttpServerResponse) => {
        const answer = cors.mark(request, marked(withBody(response), id, facts.age))
        const milliseconds = clock.currentTimeMillisUnsafe() - start
        RequestMetrics.count(fiber.context, facts, answer.status, milliseconds)
        return log === AccessLog.silent
          ? Effect.succeed(answer)
          : Effect.as(log.write(entryOf(id, request.method, facts, answer.status, milliseconds)), answer)
      }
      const preflight = cors.preflight(request)
      if (preflight !== undefined) return answered(preflight)
      const plain = request.headers["content-encoding"] === undefined ? app : decompressed
      const handled = AskedFreshness.provide(plain, request.headers["cache-control"])
      return Effect.matchCauseEffect(Effect.provideService(handled, RequestFacts.CurrentRequestFacts, facts), {
        onFailure: (cause) => Effect.flatMap(unanswered(cause, request, id), answered),
        onSuccess: answered
      })
    }))
  }
})

/** The surroundings of every request of an `HttpRouter`, matched or not. */
export const layer = (options: Options) => HttpRouter.middleware(make(options), { global: true })
