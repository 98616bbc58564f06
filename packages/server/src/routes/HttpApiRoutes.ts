/**
 * The routes whose responses the gateway encodes instead of relaying them: `POST /exchange/inspect`, token data,
 * health, metrics and candle history.
 *
 * HttpApiBuilder serves them. The relaying routes are in `Gateway`.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { Readiness } from "@trigate/api/unstable/HealthApi"
import { Problems } from "@trigate/api/unstable/RouteParts"
import { ArmSwitch, NonceRequest } from "@trigate/api/unstable/TradingApi"
import * as CandleExport from "@trigate/archive/CandleFiles"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { catalogDate } from "@trigate/domain/actions/Action"
import type { SwitchState } from "@trigate/domain/actions/Policy"
import { CurrentCaller, CurrentKeepCounted, type Scope } from "@trigate/domain/Caller"
import { countBars } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import {
  decodeFaults,
  decodeValue,
  invalidRequest,
  operationNeed,
  permitted
} from "@trigate/domain/operations/Operation"
import { getTokenData } from "@trigate/domain/tokens/TokenOperations"
import { contentTypes } from "@trigate/domain/unstable/candles/CandleText"
import { NonceSource } from "@trigate/signing/NonceSource"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as DeadMansSwitch from "@trigate/trading/guard/DeadMansSwitch"
import * as Guard from "@trigate/trading/guard/Guard"
import { Info } from "@trigate/trading/Info"
import * as Inspector from "@trigate/trading/Inspector"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { HttpApiSchemaError } from "effect/http-api/HttpApiError"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { degradedParts, eventLogReadiness, GatewayStatus, StoreReadiness } from "../Chains.ts"
import { Drain } from "../process/Load.ts"
import * as ProcessMetrics from "../process/Metrics.ts"
import * as RequestCaller from "../requests/Callers.ts"
import * as RequestSpan from "../requests/Observe.ts"
import * as Request from "../requests/Request.ts"
import { settings } from "../settings/Settings.ts"
import { Sessions } from "../streams/Sessions.ts"
import { expectedSigner } from "./Relay.ts"

const groups = GatewayApi.groups

/** The endpoints about the chains that this module serves, as a part of the API definition. */
export class EncodedApi extends HttpApi.make("gateway").add(
  HttpApiGroup.make("exchange").add(
    groups.exchange.endpoints.inspect,
    groups.exchange.endpoints.nonces,
    groups.exchange.endpoints.armSwitch,
    groups.exchange.endpoints.beatSwitch,
    groups.exchange.endpoints.switch,
    groups.exchange.endpoints.disarmSwitch
  ),
  HttpApiGroup.make("tokens").add(groups.tokens.endpoints.getTokenData),
  HttpApiGroup.make("node").add(groups.node.endpoints.getTokenData)
) {}

/** The endpoints about the gateway itself, as a part of the API definition. */
export class HealthApi extends HttpApi.make("gateway").add(groups.health) {}

/** The routes about the gateway itself that callers can still use if there is an admin listener. */
export class ShortHealthApi extends HttpApi.make("gateway").add(
  HttpApiGroup.make("health").add(groups.health.endpoints.live, groups.health.endpoints.ready)
) {}

/** Makes the function that serves a request of these routes to its caller. */
export const serving = Effect.map(
  RequestCaller.serving,
  ({ serve }) =>
  <A, E, R>(
    request: HttpServerRequest,
    handled: (incoming: Request.IncomingRequest) => Effect.Effect<A, E, R>,
    keyInPath?: Redacted.Redacted
  ) =>
    Effect.flatMap(
      Request.fromAdapter(request, keyInPath),
      (incoming) => serve(incoming, () => handled(incoming))
    )
)

const decodeSwitchRequest = decodeValue(ArmSwitch, [], { onExcessProperty: "error" })

const isStoreFault = Schema.is(SharedStoreUnreachable)

/** Maps a failure of the store that replicas share. */
const orStoreFault = <A, E, R>(self: Effect.Effect<A, E | SharedStoreUnreachable, R>) =>
  Effect.catchIf(
    self,
    isStoreFault,
    ({ detail }) =>
      Effect.fail(new GatewayError.UpstreamUnavailable({ upstream: "guard-store", attempts: 1, retryAfter: 1, detail }))
  )

const decodeNonceRequest = decodeValue(NonceRequest, [], { onExcessProperty: "error" })

/** Omits the use of an account's limits from a refusal if the caller is not allowed to act for the signer. */
const visibleTo = (
  { signers }: Scope,
  violation: GatewayError.PolicyViolation,
  signer: string | undefined
): GatewayError.PolicyViolation => {
  if (signers === undefined || signers.some((each) => each.toLowerCase() === signer)) return violation
  const { policy, rule } = violation
  return new GatewayError.PolicyViolation({ rule, ...(policy === undefined ? {} : { policy }) })
}

const inspect = HttpApiBuilder.group(
  EncodedApi,
  "exchange",
  Effect.fnUntraced(function*(handlers) {
    const inspector = yield* Inspector.Inspector
    const info = yield* Info
    const guard = yield* Guard.current
    const serve = yield* serving
    const inspected = Effect.fnUntraced(function*(request: Request.IncomingRequest) {
      yield* permitted({ chain: "trading", class: "inspect" })
      const body = yield* Request.bytes(request, Request.signedLimit)
      const inspection = yield* inspector.inspect(body, yield* expectedSigner(request))
      const violation = inspection.outer === undefined || guard === undefined
        ? undefined
        : yield* guard.inspect(body, inspection.outer.signer)
      const tooFine = yield* Effect.provideService(Inspector.warnings(inspection), Info, info)
      const { scope } = yield* CurrentCaller
      return {
        ...inspection,
        ...(violation === undefined ? {} : { policyViolation: visibleTo(scope, violation, inspection.outer?.signer) }),
        warnings: [...inspection.warnings, ...tooFine]
      }
    })
    const { next } = yield* NonceSource
    const switches = yield* DeadMansSwitch.current
    /** Refuses foreign pages, and callers that are not allowed to sign. */
    const maySign = Effect.gen(function*() {
      const foreign = Request.foreignRefusal(yield* Request.CurrentRequestRecord)
      if (foreign !== undefined) return yield* foreign
      return yield* permitted({ chain: "trading", class: "sign" })
    })
    const armed = Effect.fnUntraced(function*(request: Request.IncomingRequest, name: string) {
      yield* maySign
      const json = yield* Request.json(request)
      const arming = yield* decodeSwitchRequest(json.valueOrUndefined)
      // the bytes that were signed are sent
      const span = Encoding.members(json.text).get("actions")
      const texts = Encoding.elements(json.text.slice(span?.start, span?.end)) ?? []
      const actions = yield* Effect.provideService(DeadMansSwitch.readActions(texts), Inspector.Inspector, inspector)
      return yield* orStoreFault(switches.arm(name, { ...arming, actions }))
    })
    const switched = (
      request: HttpServerRequest,
      use: Effect.Effect<SwitchState, SharedStoreUnreachable>
    ) => serve(request, () => Effect.andThen(maySign, orStoreFault(use)))
    const issued = Effect.fnUntraced(function*(request: Request.IncomingRequest) {
      yield* maySign
      const { count = 1, signer } = yield* decodeNonceRequest((yield* Request.json(request)).valueOrUndefined)
      const { scope: { signers } } = yield* CurrentCaller
      if (signers?.every((each) => each.toLowerCase() !== signer.toLowerCase()) === true) {
        return yield* new GatewayError.NotPermitted({
          missing: "signers",
          needed: signer,
          detail: "The scope of this caller does not include the signer"
        })
      }
      const nonces = yield* Effect.mapError(
        Effect.replicateEffect(next(signer), count),
        (error) =>
          new GatewayError.UpstreamUnavailable({
            upstream: "nonces",
            attempts: 1,
            detail: error.message,
            retryAfter: error._tag === "NonceAhead" ? Math.ceil(error.wait / 1000) : 1
          })
      )
      return { signer, nonces }
    })
    return handlers.handleRaw("inspect", ({ request }) => serve(request, inspected))
      .handleRaw("nonces", ({ request }) => serve(request, issued))
      .handleRaw(
        "armSwitch",
        ({ params: { name }, request }) => serve(request, (incoming) => armed(incoming, name))
      )
      .handle("beatSwitch", ({ params: { name }, request }) => switched(request, switches.beat(name)))
      .handle("switch", ({ params: { name }, request }) => switched(request, switches.find(name)))
      .handle("disarmSwitch", ({ params: { name }, request }) => switched(request, switches.disarm(name)))
  })
)

/** Makes the handler of the token data route at a path. */
const tokenData = Effect.fnUntraced(function*(path: string) {
  const tokens = yield* TokenChain
  const serve = yield* serving
  const handled = Effect.fnUntraced(function*(address: string) {
    yield* permitted(operationNeed(getTokenData))
    const record = yield* Request.CurrentRequestRecord
    const token = yield* Effect.result(tokens.getTokenData({ address }))
    if (Result.isFailure(token)) return yield* Request.answerProblem(GatewayError.unwrapReason(token.failure), path)
    record.operations.push({ operation: "getTokenData", outcome: "ok" })
    return token.success
  })
  return (request: HttpServerRequest, address: string, keyInPath?: Redacted.Redacted) =>
    serve(request, () => handled(address), keyInPath)
})

const tokens = HttpApiBuilder.group(
  EncodedApi,
  "tokens",
  (handlers) =>
    Effect.map(
      tokenData(groups.tokens.endpoints.getTokenData.path),
      (handle) => handlers.handle("getTokenData", ({ query, request }) => handle(request, query.address))
    )
)

const keyedTokens = HttpApiBuilder.group(
  EncodedApi,
  "node",
  (handlers) =>
    Effect.map(
      tokenData(groups.node.endpoints.getTokenData.path),
      (handle) =>
        handlers.handle("getTokenData", ({ params, query, request }) =>
          handle(request, query.address, Redacted.make(params.endpointKey)))
    )
)

const encodeReadiness = Schema.encodeEffect(Schema.fromJsonString(Readiness))

const live = () => Effect.succeed({ status: "live" as const })

/** The response of `/health/ready`, with or without details. */
const readiness = Effect.gen(function*() {
  const drain = yield* Drain
  const status = yield* GatewayStatus
  const stores = yield* Effect.serviceOption(StoreReadiness)
  const { state: keys = Effect.undefined } = yield* CallerKeys
  const { streams } = yield* Sessions
  return Effect.fnUntraced(function*(isDetailed: boolean) {
    const found = Option.isSome(stores) ? yield* stores.value.probe : {}
    const callers = yield* keys
    const events = streams()?.events.status()
    const state = drain.isDraining()
      ? "draining" as const
      : found.actionLog?.room === "full"
      ? "full" as const
      : callers === "unread"
      ? "without-keys" as const
      : "ready" as const
    const parts = {
      ...found,
      ...(callers === undefined ? {} : { callers }),
      ...(events === undefined ? {} : { eventLog: eventLogReadiness(events) })
    }
    const body = yield* Effect.orDie(
      encodeReadiness(
        isDetailed
          ? { status: state, ...status, catalog: catalogDate, degraded: degradedParts(parts), ...parts }
          : { status: state, sandbox: status.sandbox, network: status.network }
      )
    )
    return Request.jsonResponse(body, state === "ready" ? 200 : 503)
  })
})

const shortHealth = HttpApiBuilder.group(
  ShortHealthApi,
  "health",
  Effect.fnUntraced(function*(handlers) {
    const ready = yield* readiness
    return handlers.handle("live", live).handleRaw("ready", () => ready(false))
  })
)

const health = HttpApiBuilder.group(
  HealthApi,
  "health",
  Effect.fnUntraced(function*(handlers) {
    const ready = yield* readiness
    const exposition = yield* ProcessMetrics.makeExposition
    return handlers
      .handle("live", live)
      .handleRaw("ready", () => ready(true))
      .handleRaw(
        "metrics",
        () =>
          Effect.map(
            exposition,
            (text) => HttpServerResponse.uint8Array(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
          )
      )
  })
)

const isGatewayError = Schema.is(GatewayError.GatewayError)

const slots: { readonly [Kind in HttpApiSchemaError["kind"]]: string } = {
  Params: "path",
  Headers: "headers",
  Query: "query",
  Body: "body",
  Payload: "payload",
  ResponseHeaders: "headers"
}

const typed = (error: unknown): GatewayError.GatewayError | undefined => {
  if (HttpApiSchemaError.is(error)) return invalidRequest(decodeFaults(error.cause, [slots[error.kind]]))
  const reason = GatewayError.unwrapReason(error)
  return isGatewayError(reason) ? reason : undefined
}

/**
 * Converts the typed errors of these routes to problem documents, and names the span of each request after its route.
 */
export const problems = Layer.succeed(
  Problems,
  (httpEffect, { endpoint, group }) =>
    Effect.contextWith((context: Context.Context<never>) =>
      RequestSpan.named(
        Context.get(context, Request.CurrentRequestRecord),
        `${group.identifier}.${endpoint.identifier}`,
        context,
        httpEffect.pipe(Effect.catch((error) => {
          const problem = typed(error)
          return problem === undefined ? Effect.fail(error) : Request.answerProblem(problem, endpoint.path)
        }))
      )
    )
)

/**
 * The routes about the chains, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.layer(EncodedApi).pipe(
  Layer.provide([inspect, tokens, keyedTokens]),
  Layer.provide(problems)
)

/**
 * Health and metrics, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHealth = HttpApiBuilder.layer(HealthApi).pipe(Layer.provide(health), Layer.provide(problems))

/**
 * Health routes that omit the metrics, the upstreams and the stores, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerShortHealth = HttpApiBuilder.layer(ShortHealthApi).pipe(
  Layer.provide(shortHealth),
  Layer.provide(problems)
)

/** The part of the API definition that these routes serve. */
export class CandlesApi extends HttpApi.make("gateway").add(GatewayApi.groups.candles) {}

const { env } = settings.archive

const notConfigured = Effect.suspend(() =>
  Effect.fail(
    new GatewayError.ArchiveNotConfigured({
      setting: env,
      detail: `This gateway does not record candle history: set ${env}, for example ${env}=BTC:1m`
    })
  )
)

/** Maximum number of concurrent exports, in total and per caller. */
const maxOpen = { all: 8, caller: 4 }

/** The number of exported bars that count as one request. */
const barsPerRequest = 10_000

const tooManyOpen = Effect.suspend(() =>
  Effect.fail(
    new GatewayError.Overloaded({
      retryAfter: 1,
      detail: `${maxOpen.all} exports of candle history are open, which is the maximum for all callers`
    })
  )
)

const tooManyOfCaller = Effect.suspend(() =>
  Effect.fail(
    new GatewayError.QuotaExceeded({
      retryAfter: 1,
      detail: `The caller already has ${maxOpen.caller} open exports of candle history, which is the maximum`
    })
  )
)

/** Makes the functions that count the exports of one gateway and pace their reads. */
const makeExports = Effect.map(Semaphore.make(1), (reads) => {
  const openBy = new Map<string, number>()
  let open = 0
  const change = (caller: string, by: number) => {
    const left = (openBy.get(caller) ?? 0) + by
    open += by
    if (left === 0) openBy.delete(caller)
    else openBy.set(caller, left)
  }
  return {
    /**
     * Counts an export until the scope of its request closes. Until then, the request counts against its caller's
     * quota.
     */
    begin: Effect.gen(function*() {
      const { id } = yield* CurrentCaller
      if (open >= maxOpen.all) return yield* tooManyOpen
      if ((openBy.get(id) ?? 0) >= maxOpen.caller) return yield* tooManyOfCaller
      yield* Effect.acquireRelease(Effect.sync(() => change(id, 1)), () => Effect.sync(() => change(id, -1)))
      yield* Effect.acquireRelease(Effect.map(CurrentKeepCounted, (keep) => keep()), (release) => Effect.sync(release))
    }),
    /**
     * Wraps an archive so that it runs one read at a time, each in its own turn of the event loop, because all exports
     * share one database connection.
     */
    paced: (source: CandleExport.Source): CandleExport.Source => ({
      ...source,
      known: (...args) => reads.withPermits(1)(source.known(...args)),
      read: (...args) => reads.withPermits(1)(Effect.andThen(Effect.yieldNow, source.read(...args)))
    })
  }
})

const candles = HttpApiBuilder.group(
  CandlesApi,
  "candles",
  Effect.fnUntraced(function*(handlers) {
    const serve = yield* serving
    const exported = Option.getOrUndefined(yield* Effect.serviceOption(CandleExport.ExportedArchive))
    const exports = yield* makeExports
    const archive = Effect.andThen(
      permitted({ chain: "trading", class: "read" }),
      exported === undefined ? notConfigured : Effect.succeed(exported)
    )

    const list = Effect.fnUntraced(function*(after?: string) {
      const source = yield* archive
      return (yield* source.list(after)).map(({ bars, bytes, coin, interval, known }) => ({
        coin,
        interval,
        bars,
        bytes,
        known: CandleExport.rangeInstants({ coin, interval }, known)
      }))
    })

    const file = Effect.fnUntraced(function*(series: CandleExport.Wanted, format: keyof typeof contentTypes) {
      const source = exports.paced(yield* archive)
      const known = yield* CandleExport.known(source, series)
      if (known === undefined) {
        const { coin, interval } = series
        return yield* new GatewayError.UnknownAsset({
          coin,
          detail: `The candle archive contains no bars of ${coin} ${interval}`
        })
      }
      const { admitted } = yield* Request.CurrentRequestRecord
      const charge = admitted?.charge
      const requests = Math.floor(countBars(known) / barsPerRequest)
      if (charge !== undefined && requests > 0) yield* charge(requests)
      yield* exports.begin
      return HttpServerResponse.stream(CandleExport.file(source, series, known, format), {
        contentType: contentTypes[format]
      })
    })

    return handlers
      .handle("list", ({ query, request }) => serve(request, () => list(query.after)))
      .handleRaw(
        "file",
        ({ params, query: { format = "ndjson", ...bounds }, request }) =>
          serve(request, () => file({ ...params, ...bounds }, format))
      )
  })
)

/**
 * The routes of candle history, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCandles = HttpApiBuilder.layer(CandlesApi).pipe(
  Layer.provide(candles),
  Layer.provide(problems)
)
