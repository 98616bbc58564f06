/** What fills the holes that a lost connection leaves: queries of `POST /info`, as frames of the stream. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import * as Subscription from "@trigate/domain/streams/Subscription"
import type { TopicRefill } from "@trigate/upstream/streams/Topic"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { Queries } from "./CoinCatalog.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/** The caller whose share of the rate limit refills take: never that of actions. */
const refiller: Caller = { id: "streams", scope: {}, quota: {} }

class NotAList extends Data.TaggedError("NotAList")<{ readonly query: string }> {}

/** The members of an order that `orderUpdates` has, of those that `historicalOrders` lists. */
const orderMembers = ["coin", "side", "limitPx", "sz", "oid", "timestamp", "origSz", "cloid", "reduceOnly"] as const

/** A row of `historicalOrders` as `orderUpdates` has it. */
const updateOf = (row: unknown): string => {
  const order = Subscription.valueAt(row, "order")
  const members = orderMembers.flatMap((member) => {
    const value = Subscription.valueAt(order, member)
    // a stream names what is set only
    return value === undefined || value === null || value === false ? [] : [[member, value] as const]
  })
  return Json.stringify({
    order: Object.fromEntries(members),
    status: Subscription.valueAt(row, "status"),
    statusTimestamp: Subscription.valueAt(row, "statusTimestamp")
  })
}

interface Plan {
  readonly query: (subscription: Subscription.Normalised, since: number) => object
  readonly frames: (
    subscription: Subscription.Normalised,
    rows: ReadonlyArray<string>,
    since: number
  ) => ReadonlyArray<string>
}

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

const plans: { readonly [query: string]: Plan } = {
  historicalOrders: {
    query: ({ request }) => ({ type: "historicalOrders", user: request["user"] }),
    frames: (_subscription, rows, since) => {
      // the venue lists the latest first, also of those with one time
      const missed = rows.toReversed().map(parsed).filter((row) =>
        Number(Subscription.valueAt(row, "statusTimestamp")) >= since
      )
      return [VenueProtocol.dataFrame("orderUpdates", `[${missed.map(updateOf).join(",")}]`)]
    }
  },
  userFillsByTime: {
    query: ({ request }, since) => ({ type: "userFillsByTime", user: request["user"], startTime: Math.max(0, since) }),
    frames: (_subscription, rows) => [VenueProtocol.dataFrame("user", `{"fills":[${rows.join(",")}]}`)]
  },
  candleSnapshot: {
    query: ({ request: { coin, interval } }, since) => ({
      type: "candleSnapshot",
      req: { coin, interval, startTime: since }
    }),
    frames: (_subscription, rows) => rows.map((row) => VenueProtocol.dataFrame("candle", row))
  }
}

/** The time from which on something was missed: that of the last state, where each frame is one. */
const startOf = (last: string | undefined, since: number, { stateAt }: Subscription.Subscription): number => {
  const at = last === undefined || stateAt === undefined
    ? undefined
    : Subscription.valueAt(Subscription.valueAt(parsed(last), "data"), stateAt)
  return Predicate.isNumber(at) ? at : since
}

/** Refills over the queries of a service; each is tried five times. */
export const make = (info: Queries) => (subscription: Subscription.Normalised): TopicRefill | undefined => {
  const { declaration } = subscription
  const { refill } = declaration
  const plan = refill && plans[refill.query]
  if (refill === undefined || plan === undefined) return undefined
  const load: TopicRefill["load"] = ({ last, since }) => {
    const start = startOf(last, since, declaration)
    return Effect.gen(function*() {
      const body = Json.write(plan.query(subscription, start))
      const response = yield* info.relay(yield* InfoProtocol.callOf(body, "gateway", true))
      const rows = response.status === 200 ? Json.elements(response.text) : undefined
      return rows === undefined
        ? yield* new NotAList({ query: refill.query })
        : plan.frames(subscription, rows, start)
    }).pipe(
      Effect.retry({ times: 4, schedule: Schedule.exponential("1 second") }),
      Effect.provideService(CurrentCaller, refiller)
    )
  }
  return { rank: refill.rank, isPartial: refill.isPartial === true, load }
}
