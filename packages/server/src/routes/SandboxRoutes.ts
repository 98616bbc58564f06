/** The routes that control the sandbox's venue, with the same authorization as the admin routes. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import type { SandboxStatus } from "@trigate/api/SandboxApi"
import {
  BookChange,
  ClockAdvance,
  Endowment,
  FaultChange,
  maxSnapshots,
  PriceChange,
  SandboxReset
} from "@trigate/api/SandboxApi"
import { invalidRequest } from "@trigate/domain/operations/Operation"
import type { SandboxState, VenueSnapshot } from "@trigate/sandbox/SandboxState"
import type { InvalidHolding } from "@trigate/sandbox/venue/GivenPositions"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as AdminRoutes from "./AdminRoutes.ts"
import * as HttpApiRoutes from "./HttpApiRoutes.ts"

/** The endpoints that control the sandbox, as a part of the API definition. */
export class SandboxApi extends HttpApi.make("gateway").add(GatewayApi.groups.sandbox) {}

/** A sandbox to control, and its snapshots, which persist across changes of settings. */
export interface Controlled {
  readonly state: SandboxState["Service"]
  readonly snapshots: Map<string, VenueSnapshot>
}

/** Makes a controlled sandbox without snapshots. */
export const controlled = (state: SandboxState["Service"]): Controlled => ({ state, snapshots: new Map() })

const advanceIn = AdminRoutes.payloadDecoder(ClockAdvance)
const pricesIn = AdminRoutes.payloadDecoder(PriceChange)
const bookIn = AdminRoutes.payloadDecoder(BookChange)
const faultsIn = AdminRoutes.payloadDecoder(FaultChange)
const endowmentIn = AdminRoutes.payloadDecoder(Endowment)
const resetIn = AdminRoutes.payloadDecoder(SandboxReset)

const refuse = (path: ReadonlyArray<string | number>, message: string) =>
  Effect.fail(invalidRequest([{ path, message }]))

const group = ({ snapshots, state }: Controlled) => {
  const { faults, info, trading, venue } = state
  let taken = 0

  const status = Effect.map(trading.now, (time): SandboxStatus => ({
    seed: state.seed,
    time,
    faults: faults.get(),
    snapshots: [...snapshots.keys()]
  }))

  const setPrices = Effect.fnUntraced(function*({ coin, points, speed }: PriceChange) {
    const { markets } = yield* Ref.get(info.state)
    if (!markets.has(coin)) return yield* refuse(["coin"], `The sandbox does not list ${coin}`)
    const late = points.findIndex(({ time }, index) => time <= (points[index - 1]?.time ?? -1))
    if (late !== -1) {
      return yield* refuse(["points", late, "time"], "Expected a time after the time of the previous point")
    }
    yield* trading.playPrices(coin, points, speed)
    yield* trading.tick
  })

  const setBook = ({ book, coin }: BookChange) =>
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

  const endow = ({ positions = [], requestLimit, spot = [], usd, user }: Endowment) =>
    Effect.flatMap(state.snapshot, (before) =>
      Effect.gen(function*() {
        if (usd !== undefined) yield* holding(trading.depositUsd(user, usd), "usd")
        for (const [index, { amount, token }] of spot.entries()) {
          yield* holding(trading.depositSpot(user, token, amount), "spot", index)
        }
        for (const [index, { coin, entryPx, size }] of positions.entries()) {
          yield* holding(trading.setPosition(user, coin, size, entryPx), "positions", index)
        }
        if (requestLimit !== undefined) yield* venue.limitRequests(user, requestLimit)
      }).pipe(
        // all of it or nothing
        Effect.tapError(() => state.restore(before))
      ))

  const snapshot = Effect.map(state.snapshot, (made) => {
    snapshots.set(String(++taken), made)
    const [oldest] = snapshots.keys()
    if (snapshots.size > maxSnapshots && oldest !== undefined) snapshots.delete(oldest)
  })

  const reset = Effect.fnUntraced(function*({ snapshot: id }: SandboxReset) {
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
      const serve = yield* AdminRoutes.guarding
      const served = <A, E>(request: HttpServerRequest, control: Effect.Effect<A, E>) =>
        serve(request, AdminRoutes.ownPage.pipe(Effect.andThen(control), Effect.andThen(status)))
      return handlers
        .handle("status", ({ request }) => served(request, Effect.void))
        .handleRaw(
          "advance",
          ({ request }) =>
            served(request, Effect.flatMap(advanceIn(request), ({ advance }) => trading.advance(advance)))
        )
        .handleRaw("setPrices", ({ request }) => served(request, Effect.flatMap(pricesIn(request), setPrices)))
        .handleRaw("setBook", ({ request }) => served(request, Effect.flatMap(bookIn(request), setBook)))
        .handleRaw("setFaults", ({ request }) => served(request, Effect.flatMap(faultsIn(request), faults.set)))
        .handleRaw("endow", ({ request }) => served(request, Effect.flatMap(endowmentIn(request), endow)))
        .handle("snapshot", ({ request }) => served(request, snapshot))
        .handleRaw("reset", ({ request }) => served(request, Effect.flatMap(resetIn(request), reset)))
    })
  )
}

/**
 * The routes that control the sandbox, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (sandbox: Controlled) =>
  HttpApiBuilder.layer(SandboxApi).pipe(Layer.provide(group(sandbox)), Layer.provide(HttpApiRoutes.problems))
