/** Trading in a test: actions without signatures, and queries, against a fresh venue. */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import type { Venue } from "@trigate/sandbox/unstable/venue/Venue"
import * as VenueInfo from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"

/** Asset ids. */
export const btc = 0
export const eth = 1
export const sol = 5
export const hype = 159
export const hypeSpot = 10_107

/** The venue at its time. */
export const venueNow = Effect.gen(function*() {
  const { info, trading } = yield* SandboxState
  return trading.at(yield* Ref.get(info.state), yield* trading.now)
})

/** Answers a query from the state. */
export const ask = Effect.fnUntraced(function*(query: object) {
  const { info, seed, trading: controls, venue } = yield* SandboxState
  const now = yield* controls.now
  const listed = yield* Ref.get(info.state)
  const trading: Venue = yield* venueNow
  const view = { seed, ...listed, venue: yield* Ref.get(venue.state), trading, now }
  return Encoding.of(VenueInfo.answer(view, Encoding.encode(JSON.stringify(query))).text).valueOrUndefined
})

/** Asks for one member of an answer. */
export const askAt = (query: object, ...path: ReadonlyArray<string | number>) =>
  Effect.map(ask(query), (answer) => JsonParts.at(answer, ...path))

/** Executes an action. Returns the response's data, or the refusal of the whole action. */
export const act = Effect.fnUntraced(function*(user: Address, type: string, members: object = {}) {
  const { trading } = yield* SandboxState
  return yield* trading.act(user, { type, ...members }).pipe(
    Effect.map(({ data }) => data),
    Effect.catchTag("ActionRejected", ({ message }) => Effect.succeed(message))
  )
})

/** One order as the wire has it. */
export const orderOf = (
  a: number,
  side: "buy" | "sell",
  s: string,
  p: string,
  rest: { readonly tif?: string; readonly r?: boolean; readonly t?: object; readonly c?: string } = {}
) => ({
  a,
  b: side === "buy",
  p,
  s,
  r: rest.r ?? false,
  t: rest.t ?? { limit: { tif: rest.tif ?? "Gtc" } },
  ...(rest.c === undefined ? {} : { c: rest.c })
})

/** A take-profit or stop-loss at the market. */
export const triggerAt = (tpsl: "tp" | "sl", triggerPx: string, isMarket = true) => ({
  trigger: { isMarket, triggerPx, tpsl }
})

/** Places one order. Returns its status. */
export const place = (user: Address, ...order: Parameters<typeof orderOf>) =>
  Effect.map(
    act(user, "order", { orders: [orderOf(...order)], grouping: "na" }),
    (data) => JsonParts.at(data, "statuses", 0) ?? data
  )

/** The id in a status. */
export const oidOf = (status: unknown): unknown =>
  JsonParts.at(status, "resting", "oid") ?? JsonParts.at(status, "filled", "oid")

/** The mark price of an asset, moved by a part, with digits that any asset takes. */
export const markOf = (coin: string, part = 0) =>
  Effect.map(askAt({ type: "activeAssetData", user: `0x${"0".repeat(40)}`, coin }, "markPx"), (text) => {
    const px = Number(text) * (1 + part)
    return String(px >= 10_000 ? Math.round(px) : Number(px.toPrecision(5)))
  })

/** A list in an answer; empty for anything else. */
export const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []
