/**
 * The operator's routes: the action log, the outcomes of actions, the keys of callers, the latest requests, and the
 * controls of the sandbox's venue.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Admin from "@trigate/api/unstable/AdminApi"
import * as Sandbox from "@trigate/api/unstable/SandboxApi"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import * as KeyStore from "@trigate/callers/KeyStore"
import type { Quotas } from "@trigate/callers/Quotas"
import { legRejection } from "@trigate/domain/actions/ActionOutcome"
import { HaltTarget } from "@trigate/domain/actions/Policy"
import { CurrentCaller } from "@trigate/domain/Caller"
import { NotPermitted, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import type { InvalidRequest, Overloaded, QuotaExceeded, Unauthorized } from "@trigate/domain/errors/GatewayError"
import { type AnyCodec, decodeValue, invalidRequest } from "@trigate/domain/operations/Operation"
import type { SandboxState, VenueSnapshot } from "@trigate/sandbox/SandboxState"
import type { InvalidHolding } from "@trigate/sandbox/unstable/venue/Advance"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import { Exchange } from "@trigate/trading/Exchange"
import * as Guard from "@trigate/trading/guard/Guard"
import type { Unanswered } from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import type { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { MetricHistory } from "../process/Metrics.ts"
import { type LiveRequest, LiveRequests } from "../requests/Observe.ts"
import * as Request from "../requests/Request.ts"
import { EffectiveSettings } from "../settings/SettingsSources.ts"
import * as HttpApiRoutes from "./HttpApiRoutes.ts"
import * as SandboxBots from "./SandboxBots.ts"

/** The part of the API definition that these routes serve. */
export class AdminApi extends HttpApi.make("gateway").add(GatewayApi.groups.admin) {}

const administers = Effect.flatMap(
  CurrentCaller,
  ({ scope }) =>
    scope.classes?.includes("admin") === true ? Effect.void : Effect.fail(
      new NotPermitted({
        missing: "classes",
        needed: "admin",
        detail: "The scope of this caller does not include the class `admin`"
      })
    )
)

/** Runs an effect with the operator as `CurrentCaller`. */
export type Administering = <A, E, R>(
  request: HttpServerRequest,
  handled: Effect.Effect<A, E, R>
) => Effect.Effect<A, E | NotPermitted | Overloaded | QuotaExceeded | Unauthorized | UpstreamUnavailable, R>

/**
 * Authorizes the operator: if keys are required, a caller whose scope contains `admin`.
 *
 * If keys are not required, these routes are served to every client that can reach them. Clients other than the
 * operator must therefore not be able to reach the listener.
 */
export const guarding: Effect.Effect<Administering, never, CallerKeys | Quotas> = Effect.gen(function*() {
  const { check } = yield* CallerKeys
  const serve = yield* HttpApiRoutes.serving
  return (request, handled) =>
    serve(request, () => check === undefined ? handled : Effect.andThen(administers, handled))
})

// omits the body, because it contains the signature
const listed = ({ body: _, fingerprint, ...entry }: Unanswered) => ({ id: fingerprint, ...entry })

/** Fails if the request is from a page whose origin is not allowed. */
export const ownPage = Effect.flatMap(Request.CurrentRequestRecord, (record) => {
  const refusal = Request.foreignRefusal(record)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
})

const toCallerKey = ({ hash: _, ...record }: KeyStore.KeyRecord, now: number): Admin.CallerKey => ({
  ...record,
  state: KeyStore.keyState(record, now)
})

/** Maps a refused change of keys to an error of the request, and a failure of the store to an error of the gateway. */
const toRequestError = <A>(self: Effect.Effect<A, KeyStore.KeyRefusal | KeyStore.KeyStoreFault>) =>
  Effect.mapError(self, (error) =>
    error._tag === "KeyRefusal"
      ? invalidRequest([{ path: [], message: error.message }])
      : new UpstreamUnavailable({ upstream: "caller-keys", attempts: 1, detail: error.message }))

const noKeys = Effect.suspend(() =>
  Effect.fail(
    invalidRequest([{
      path: [],
      message:
        "This gateway requires no keys; create the first key with trigate keys create, and set TRIGATE_CALLERS to require keys"
    }])
  )
)

/** Decodes the body of a request. Reads the body only after the caller is authorized. */
export const payloadDecoder = <S extends AnyCodec>(schema: S) => {
  // a misspelt optional member would otherwise be ignored
  const decode = decodeValue(schema, [], { onExcessProperty: "error" })
  return (request: HttpServerRequest) =>
    Effect.flatMap(
      Effect.flatMap(Request.fromAdapter(request), Request.json),
      ({ valueOrUndefined }) => decode(valueOrUndefined)
    )
}

const decodeCreation = payloadDecoder(Admin.KeyCreation)
const decodeRotation = payloadDecoder(Admin.KeyRotation)
const decodeRevocation = payloadDecoder(Admin.KeyRevocation)
const decodeTarget = payloadDecoder(HaltTarget)

const toCallerKeys = (records: ReadonlyArray<KeyStore.KeyRecord>) =>
  Effect.map(Clock.currentTimeMillis, (now) => records.map((record) => toCallerKey(record, now)))

const toIssuedKey = ({ key, record }: KeyStore.Issued) =>
  Effect.map(Clock.currentTimeMillis, (now): Admin.IssuedKey => ({ key, record: toCallerKey(record, now) }))

/** Maps a failure of the store of halts: this replica has changed its halts, and the others do not know it yet. */
const orReplicaFault = <A>(self: Effect.Effect<A, SharedStoreUnreachable>) =>
  Effect.mapError(self, ({ detail }) =>
    new UpstreamUnavailable({
      upstream: "guard-store",
      attempts: 1,
      detail: `Done on this replica; the other replicas do not know it yet, because the store is unreachable: ${detail}`
    }))

const usualOverlap = Duration.days(1)

const toRateLimitUse = ({ all, callers, upstream }: RateWindow.Use): Admin.RateLimitUse => ({
  upstream,
  all,
  callers: [...callers].map(([caller, units]) => ({ caller, units })).toSorted((one, other) => other.units - one.units)
})

const toNotedRequest = ({ caller, error, key, traceId: _, ...noted }: LiveRequest): Admin.NotedRequest => ({
  ...noted,
  ...(caller === undefined ? {} : { caller }),
  ...(key === undefined ? {} : { key }),
  ...(error === undefined ? {} : { error })
})

const admin = HttpApiBuilder.group(
  AdminApi,
  "admin",
  Effect.fnUntraced(function*(handlers) {
    const log = yield* ActionLog
    const exchange = yield* Exchange
    const guard = yield* Guard.Guard
    // a gateway that does not require keys does not create keys either, because any client could create a key for later
    // use
    const keyStore = Option.getOrUndefined(yield* Effect.serviceOption(KeyStore.KeyStore))
    const windows = Option.getOrElse(yield* Effect.serviceOption(RateLimiter.Windows), () => new Map())
    const tail = yield* LiveRequests
    const serve = yield* guarding
    const { minute, samples } = yield* MetricHistory
    const settings = Option.getOrElse(yield* Effect.serviceOption(EffectiveSettings), () => [])

    const resolve = Effect.fnUntraced(function*(id: string) {
      const entry = (yield* log.unanswered).find(({ fingerprint }) => fingerprint === id)
      if (entry === undefined) return { _tag: "Absent" as const }
      return yield* Effect.match(exchange.resolve(entry.body), {
        onFailure: ({ advice, message }) => ({ _tag: "StillUnknown" as const, message, advice }),
        onSuccess: (found) =>
          found._tag === "Accepted"
            ? Option.match(legRejection(found.result), {
              onNone: () => ({ _tag: found._tag }),
              onSome: ({ message }) => ({ _tag: found._tag, message })
            })
            : { _tag: found._tag, message: found.rejection.message }
      })
    })

    const keys = keyStore === undefined
      ? Effect.succeed({ asked: false, keys: [] })
      : Effect.map(Effect.flatMap(toRequestError(keyStore.list), toCallerKeys), (keys) => ({ asked: true, keys }))

    const store: Effect.Effect<KeyStore.KeyStore["Service"], InvalidRequest> = keyStore === undefined
      ? noKeys
      : Effect.succeed(keyStore)

    /** Changes the keys for an authorized request: decodes its body, and maps what the store returns to the response. */
    const change = <Body, Fault, Changed, Response>(
      request: HttpServerRequest,
      decode: (request: HttpServerRequest) => Effect.Effect<Body, Fault>,
      changed: (
        store: KeyStore.KeyStore["Service"],
        body: Body
      ) => Effect.Effect<Changed, KeyStore.KeyRefusal | KeyStore.KeyStoreFault>,
      respond: (changed: Changed) => Effect.Effect<Response>
    ) =>
      serve(
        request,
        Effect.gen(function*() {
          yield* ownPage
          const keys = yield* store
          return yield* respond(yield* toRequestError(changed(keys, yield* decode(request))))
        })
      )

    return handlers
      .handle(
        "actions",
        ({ request }) => serve(request, Effect.map(log.unanswered, (entries) => entries.map(listed)))
      )
      .handle("forget", ({ params, request }) =>
        serve(
          request,
          Effect.andThen(ownPage, Effect.map(log.forget(params.id), (forgotten) => ({ forgotten })))
        ))
      .handle("resolve", ({ params, request }) => serve(request, Effect.andThen(ownPage, resolve(params.id))))
      .handle("keys", ({ request }) => serve(request, keys))
      .handleRaw(
        "createKey",
        ({ request }) => change(request, decodeCreation, (store, creation) => store.create(creation), toIssuedKey)
      )
      .handleRaw("rotateKey", ({ params: { name }, request }) =>
        change(
          request,
          decodeRotation,
          (store, rotation) => store.rotate({ name, overlap: usualOverlap, ...rotation }),
          toIssuedKey
        ))
      .handleRaw(
        "revokeKeys",
        ({ params: { name }, request }) =>
          change(request, decodeRevocation, (store, revocation) => store.revoke({ name, ...revocation }), toCallerKeys)
      )
      .handle("guard", ({ request }) => serve(request, guard.status))
      .handleRaw("haltGuard", ({ request }) =>
        serve(
          request,
          ownPage.pipe(
            Effect.andThen(decodeTarget(request)),
            Effect.tap((target) => Effect.logWarning(`The operator halted ${Guard.printTarget(target)}`)),
            Effect.flatMap((target) => orReplicaFault(guard.halt(target))),
            Effect.andThen(guard.status)
          )
        ))
      .handleRaw("resumeGuard", ({ request }) =>
        serve(
          request,
          ownPage.pipe(
            Effect.andThen(decodeTarget(request)),
            Effect.tap((target) => Effect.logWarning(`The operator ended the halt of ${Guard.printTarget(target)}`)),
            Effect.flatMap((target) => orReplicaFault(guard.resume(target))),
            Effect.map((resumed) => ({ resumed }))
          )
        ))
      .handle(
        "rateLimits",
        ({ request }) =>
          serve(
            request,
            Effect.clockWith((clock) => Effect.succeed(RateWindow.currentUses(windows, clock).map(toRateLimitUse)))
          )
      )
      .handle("history", ({ request }) => serve(request, samples))
      .handle("minute", ({ request }) => serve(request, minute))
      .handle("settings", ({ request }) => serve(request, Effect.succeed(settings)))
      .handle(
        "requests",
        ({ query: { after = 0 }, request }) =>
          serve(request, Effect.map(tail.after(after), (requests) => requests.map(toNotedRequest)))
      )
  })
)

/**
 * The operator's routes, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.layer(AdminApi).pipe(Layer.provide(admin), Layer.provide(HttpApiRoutes.problems))

/** The endpoints that control the sandbox, as a part of the API definition. */
export class SandboxApi extends HttpApi.make("gateway").add(GatewayApi.groups.sandbox) {}

/** A sandbox to control, and its snapshots, which persist across changes of settings. */
export interface Controlled {
  readonly state: SandboxState["Service"]
  readonly snapshots: Map<string, VenueSnapshot>
}

/** Makes a controlled sandbox without snapshots. */
export const controlled = (state: SandboxState["Service"]): Controlled => ({ state, snapshots: new Map() })

const refuse = (path: ReadonlyArray<string | number>, message: string) =>
  Effect.fail(invalidRequest([{ path, message }]))

const group = ({ snapshots, state }: Controlled) => {
  const { faults, info, trading, venue } = state
  let taken = 0

  const status = Effect.map(trading.now, (time): Sandbox.SandboxStatus => ({
    seed: state.seed,
    time,
    faults: faults.get(),
    snapshots: [...snapshots.keys()],
    ...(state.feed === undefined ? {} : { feed: state.feed.status() })
  }))

  const setPrices = Effect.fnUntraced(function*({ coin, points, speed }: Sandbox.PriceChange) {
    const { markets } = yield* Ref.get(info.state)
    if (!markets.has(coin)) return yield* refuse(["coin"], `The sandbox does not list ${coin}`)
    const late = points.findIndex(({ time }, index) => time <= (points[index - 1]?.time ?? -1))
    if (late !== -1) {
      return yield* refuse(["points", late, "time"], "Expected a time after the time of the previous point")
    }
    yield* trading.playPrices(coin, points, speed)
    yield* trading.tick
  })

  const setBook = ({ book, coin }: Sandbox.BookChange) =>
    Effect.catchTag(
      trading.setBook(coin, book ?? undefined),
      "InvalidBook",
      ({ message, path: [first = "coin", ...rest] }) =>
        refuse(first === "coin" ? [first] : ["book", first, ...rest], message)
    )

  const holding = <A>(set: Effect.Effect<A, InvalidHolding>, ...path: ReadonlyArray<string | number>) =>
    Effect.catchTag(
      set,
      "InvalidHolding",
      ({ member, message }) => refuse(path.length === 1 ? path : [...path, member], message)
    )

  const endow = ({ positions = [], requestLimit, spot = [], usd, user, volume }: Sandbox.Endowment) =>
    Effect.flatMap(state.snapshot, (before) =>
      Effect.gen(function*() {
        if (usd !== undefined) yield* holding(trading.depositUsd(user, usd), "usd")
        for (const [index, { amount, token }] of spot.entries()) {
          yield* holding(trading.depositSpot(user, token, amount), "spot", index)
        }
        for (const [index, { coin, entryPx, size }] of positions.entries()) {
          yield* holding(trading.setPosition(user, coin, size, entryPx), "positions", index)
        }
        if (volume !== undefined) yield* holding(trading.setVolume(user, volume), "volume")
        if (requestLimit !== undefined) yield* venue.limitRequests(user, requestLimit)
      }).pipe(
        // all of it or nothing
        Effect.tapError(() => state.restore(before))
      ))

  const snapshot = Effect.map(state.snapshot, (made) => {
    snapshots.set(String(++taken), made)
    const [oldest] = snapshots.keys()
    if (snapshots.size > Sandbox.maxSnapshots && oldest !== undefined) snapshots.delete(oldest)
  })

  const reset = Effect.fnUntraced(function*({ snapshot: id }: Sandbox.SandboxReset) {
    if (id === undefined) return yield* state.reset
    const known = snapshots.get(id)
    if (known === undefined) {
      return yield* refuse(["snapshot"], "Unknown snapshot: GET /admin/sandbox lists the snapshots")
    }
    yield* state.restore(known)
  })

  return HttpApiBuilder.group(
    SandboxApi,
    "sandbox",
    Effect.fnUntraced(function*(handlers) {
      const serve = yield* guarding
      const served = <A, E>(request: HttpServerRequest, control: Effect.Effect<A, E>) =>
        serve(request, ownPage.pipe(Effect.andThen(control), Effect.andThen(status)))
      /** Makes the handler of a control with a body. */
      const control = <S extends AnyCodec, A, E>(schema: S, set: (body: S["Type"]) => Effect.Effect<A, E>) => {
        const decode = payloadDecoder(schema)
        return ({ request }: { readonly request: HttpServerRequest }) =>
          served(request, Effect.flatMap(decode(request), set))
      }
      return handlers
        .handle("status", ({ request }) => served(request, Effect.void))
        .handleRaw("advance", control(Sandbox.ClockAdvance, ({ advance }) => trading.advance(advance)))
        .handleRaw("setPrices", control(Sandbox.PriceChange, setPrices))
        .handleRaw("setBook", control(Sandbox.BookChange, setBook))
        .handleRaw("setFaults", control(Sandbox.FaultChange, faults.set))
        .handleRaw("cutSockets", control(Sandbox.SocketCut, ({ downFor }) => faults.cutSockets(downFor)))
        .handleRaw("startBots", ({ request }) =>
          serve(
            request,
            ownPage.pipe(
              Effect.andThen(payloadDecoder(Sandbox.BotStart)(request)),
              Effect.flatMap(({ bots }) => SandboxBots.start(state, bots))
            )
          ))
        .handleRaw("endow", control(Sandbox.Endowment, endow))
        .handle("snapshot", ({ request }) => served(request, snapshot))
        .handleRaw("reset", control(Sandbox.SandboxReset, reset))
    })
  )
}

/**
 * The routes that control the sandbox, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSandbox = (sandbox: Controlled) =>
  HttpApiBuilder.layer(SandboxApi).pipe(Layer.provide(group(sandbox)), Layer.provide(HttpApiRoutes.problems))
