/**
 * The fast lane: plain requests are served by plain function calls, from Node's request to Node's response.
 *
 * A request is plain by its head: a small JSON body, sent to the path of a route as the contract spells it, with no header that
 * could change its answer. No rule of the gateway stands here. The request is observed as any other, and each policy is asked by
 * its own step. Where one of them has to wait, the route goes on with an effect; where the caller is not known yet, the ordinary
 * route goes on with what was read.
 */
import * as Start from "@trigate/domain/operations/Start"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpServer from "effect/http/HttpServer"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { Listener } from "../process/NodeServer.ts"
import * as HttpBody from "./HttpBody.ts"
import type { Observed } from "./Observe.ts"
import type { Serving } from "./RequestCaller.ts"
import { CurrentRequestFacts } from "./RequestFacts.ts"
import type { RequestFacts } from "./RequestFacts.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the lane is a listener of Node's server
import type { IncomingMessage, ServerResponse } from "node:http"

/** A route that has plain requests. */
export interface PlainRoute {
  /** Its name in the contract. */
  readonly name: string
  /** Its path in the contract. */
  readonly path: string
  readonly start: (body: Uint8Array, facts: RequestFacts, path: string) => Start.Start<HttpServerResponse, never>
}

/** The plain routes of one gateway. */
export class FastLane extends Context.Service<FastLane, {
  /** By path. */
  readonly routes: Map<string, PlainRoute>
  /** By what follows the caller's key in the path: nothing, or a path. */
  readonly keyed: Map<string, PlainRoute>
}>()("@trigate/server/requests/FastLane") {}

/** No routes yet; a gateway adds its own. */
export const layer: Layer.Layer<FastLane> = Layer.sync(
  FastLane,
  () => FastLane.of({ routes: new Map(), keyed: new Map() })
)

/** Adds a route. */
export const add = ({ keyed, routes }: FastLane["Service"], route: PlainRoute): void => {
  const rest = /^\/:endpointKey(?<rest>.*)$/u.exec(route.path)?.groups?.["rest"]
  if (rest === undefined) routes.set(route.path, route)
  else keyed.set(rest, route)
}

/**
 * Serves a plain request of a server, whose context it is given; returns false for any other request.
 *
 * It calls `ordinary` at once or later if the ordinary route has to continue.
 */
export type Lane = (
  server: Context.Context<never>,
  request: IncomingMessage,
  response: ServerResponse,
  ordinary: () => void
) => boolean

/** Where a server finds the lane of a gateway, once the routes of the gateway are built. */
export interface Entrance {
  lane: Lane | undefined
}

/**
 * Serves the requests of the context's server with an app, for as long as the scope lives; the lane has each of them first.
 *
 * What it does not serve goes to the listener that the platform has added for the app.
 */
export const serve = Effect.fnUntraced(function*<E>(
  app: Effect.Effect<HttpServerResponse, E, HttpServerRequest | Scope.Scope>,
  entrance: Entrance
) {
  const listener = yield* Listener
  const server = yield* Effect.context<HttpServer.HttpServer>()
  const before = listener.listeners("request")
  yield* HttpServer.serveEffect(app)
  // the server itself removes the listener that keeps requests until there is an app
  const own = listener.listeners("request").filter((each) => before.includes(each))
  const ofApp = listener.listeners("request").filter((each) => !before.includes(each))
  listener.removeAllListeners("request")
  listener.on("request", (request, response) => {
    const give = (listeners: typeof own) => {
      for (const each of listeners) Reflect.apply(each, listener, [request, response])
    }
    give(own)
    if (entrance.lane?.(server, request, response, () => give(ofApp)) !== true) give(ofApp)
  })
})

/** The headers that change no answer, or that change it in the lane as they do elsewhere. */
const plainHeaders: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "forwarded",
  "host",
  // Node's `fetch` sends it; who crosses sites is told by `sec-fetch-site`
  "sec-fetch-mode",
  "user-agent",
  "x-api-key",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "x-request-id"
])

const isPlain = ({ headers, method }: IncomingMessage, { socket }: ServerResponse): boolean => {
  // an answer that waits behind another has no socket yet
  if (method !== "POST" || socket === null || !HttpBody.isSmall(headers)) return false
  for (const name in headers) if (!plainHeaders.has(name)) return false
  return true
}

/** Copying longer bodies would cost more than a second chunk. */
const copied = 16 * 1024

const latin1Of = ({ buffer, byteLength, byteOffset }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("latin1")

/**
 * Writes the body of an answer.
 *
 * Node writes a text with its head, as one chunk, and Latin-1 without encoding it: such a text holds any bytes as they are.
 */
const end = (response: ServerResponse, { body }: HttpServerResponse): void => {
  if (body instanceof HttpBody.PiecedBody) {
    response.cork()
    for (const piece of body.pieces) response.write(piece)
    response.end()
  } else if (body._tag !== "Uint8Array") response.end()
  else if (body.text !== undefined) response.end(body.text, body.text.length === body.contentLength ? "latin1" : "utf8")
  else if (body.contentLength > copied) response.end(body.body)
  else response.end(latin1Of(body.body), "latin1")
}

/**
 * The lane of a gateway. What is left of its requests ends with the scope.
 *
 * There is none where the program has a tracer: the fibres of the ordinary way carry the spans.
 */
export const make = (
  { keyed, routes }: FastLane["Service"],
  { answers, begin, fault, handOver }: Observed,
  { tryAdmit }: Serving
): Effect.Effect<Lane | undefined, never, Scope.Scope> =>
  Effect.withFiber<Lane | undefined, never, Scope.Scope>((fiber) => {
    if (fiber.cache.tracer !== undefined) return Effect.undefined
    const { context } = fiber
    const clock = fiber.getRef(Clock.Clock)
    const place = { clock, context }
    const fork = Effect.runForkWith(context)
    const scope = Context.getUnsafe(context, Scope.Scope)

    const serve = (
      { name, path, start }: PlainRoute,
      key: string | undefined,
      request: IncomingMessage,
      response: ServerResponse,
      ordinary: () => void
    ): boolean => {
      const observation = begin({ method: "POST", headers: request.headers }, response, place)
      const { facts } = observation
      const goOn = () => {
        response.off("close", leave)
        handOver(response, observation)
        ordinary()
      }
      facts.admitted = tryAdmit(request, key, facts, clock)
      if (facts.admitted === undefined) {
        handOver(response, observation)
        return false
      }
      const { caller, provide } = facts.admitted
      let stop: Start.Stop | undefined
      let left: Fiber.Fiber<unknown, unknown> | undefined

      const leave = () => {
        stop?.()
        left?.interruptUnsafe()
        observation.end()
      }
      const answer = (given: HttpServerResponse) => {
        response.off("close", leave)
        stop?.()
        observation.noted(given)
        response.writeHead(given.status, observation.headersOf(given))
        observation.end()
        end(response, given)
      }
      /** Does what is left as an effect, as it is done by the route. */
      const conclude = (rest: Effect.Effect<HttpServerResponse>) => {
        const answered = Effect.matchCauseEffect(rest, {
          // the caller has left, or the gateway ends
          onFailure: (cause) =>
            Cause.hasInterrupts(cause) ? Effect.sync(leave) : Effect.map(fault(cause, facts), answer),
          onSuccess: (given) => Effect.sync(() => answer(given))
        })
        left = Fiber.runIn(
          fork(
            answered.pipe(
              Effect.provideService(CurrentRequestFacts, facts),
              provide
            )
          ),
          scope
        )
      }

      /** Makes a step; an exception in it is a defect of this request. */
      const step = (made: () => void) => {
        const ended = Result.try({ try: made, catch: Effect.die })
        if (Result.isFailure(ended)) conclude(ended.failure)
      }

      response.on("close", leave)
      HttpBody.readSmall(request, (body) =>
        step(() => {
          facts.read = body
          facts.route = name
          facts.caller = caller
          const done: Start.Done<HttpServerResponse, never> = (rest) =>
            step(() => {
              const left = rest()
              if (Start.isAnswer(left)) answer(left.value)
              else conclude(left)
            })
          stop = start(body, facts, path)({ caller, ...place }, done)
          if (stop === undefined) goOn()
        }))
      return true
    }

    return Effect.succeed((server, request, response, ordinary) => {
      if (!isPlain(request, response) || !answers(server, request.headers.host)) return false
      const url = request.url ?? ""
      const route = routes.get(url)
      if (route !== undefined) return serve(route, undefined, request, response, ordinary)
      const end = url.indexOf("/", 1)
      const keyedRoute = keyed.get(end < 0 ? "" : url.slice(end))
      return keyedRoute !== undefined &&
        serve(keyedRoute, end < 0 ? url.slice(1) : url.slice(1, end), request, response, ordinary)
    })
  })
