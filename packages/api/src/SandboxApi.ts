/**
 * The routes that control the sandbox's venue: its clock, prices, faults and accounts.
 *
 * They are served on the same listener as the admin routes. A gateway with upstream addresses has none of these routes.
 */
import { Address, Millis } from "@trigate/domain/encoding/Encoding"
import {
  NotPermitted,
  Overloaded,
  PayloadTooLarge,
  QuotaExceeded,
  Unauthorized,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import { SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as Paths from "./Paths.ts"
import { Problems } from "./RouteParts.ts"

/** Maximum number of snapshots of a sandbox. Taking another snapshot removes the oldest. */
export const maxSnapshots = 8

const SnapshotId = Schema.String.check(Schema.isPattern(/^[0-9]{1,9}$/u, { expected: "the ID of a snapshot" }))

/** The feed from the venue that the sandbox follows. */
export const FeedStatus = Schema.Struct({
  state: Schema.Literals(["following", "lost", "unreachable"]).annotateKey({
    description:
      "`lost`: the connection is lost. `unreachable`: the venue has not responded yet. In both, the prices follow the seed"
  }),
  since: Millis.annotateKey({ description: "The time at which the state began" }),
  coins: Schema.Natural.annotateKey({ description: "Number of coins whose prices are followed" }),
  books: Schema.Natural.annotateKey({ description: "Number of coins whose books and trades are followed" })
}).annotate({ identifier: "FeedStatus" })

/** The state of the sandbox's venue. */
export const SandboxStatus = Schema.Struct({
  seed: Schema.String,
  time: Millis.annotateKey({ description: "The venue's time, in milliseconds" }),
  faults: SandboxFaults,
  snapshots: Schema.Array(SnapshotId).annotateKey({
    description: `The IDs of the snapshots, oldest first, at most ${maxSnapshots}`
  }),
  feed: Schema.optionalKey(FeedStatus)
}).annotate({ identifier: "SandboxStatus" })
export type SandboxStatus = typeof SandboxStatus.Type

const longestAdvance = 31 * 86_400_000

/** The milliseconds by which to advance the clock. */
export const ClockAdvance = Schema.Struct({
  advance: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: longestAdvance })).annotateKey({
    description: "Number of milliseconds by which the venue's time advances immediately, at most 31 days"
  })
}).annotate({ identifier: "ClockAdvance", examples: [{ advance: 60_000 }] })
export type ClockAdvance = typeof ClockAdvance.Type

const Price = Schema.Finite.check(Schema.isGreaterThan(0))
const Coin = Schema.String.check(Schema.isMaxLength(64))

/** The prices to set for a coin from now on. */
export const PriceChange = Schema.Struct({
  coin: Coin,
  points: Schema.Array(Schema.Struct({
    time: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotateKey({
      description: "Time of the price point in milliseconds. Only the differences between the times matter"
    }),
    price: Price
  })).check(Schema.isMinLength(1), Schema.isMaxLength(10_000)).annotateKey({
    description:
      "The price points, ordered by time. The first point applies immediately. The price is interpolated linearly between points, and is constant after the last point"
  }),
  speed: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))).annotateKey({
    description: "Speed at which the price points are replayed, relative to real time; 1 if absent"
  })
}).annotate({
  identifier: "PriceChange",
  examples: [{ coin: "BTC", points: [{ time: 0, price: 60_000 }, { time: 60_000, price: 58_000 }] }]
})
export type PriceChange = typeof PriceChange.Type

const Amount = Schema.String.check(
  Schema.isPattern(/^-?[0-9]{1,15}(?:\.[0-9]{1,18})?$/u, { expected: "a decimal number" })
)

const BookSide = Schema.Array(Schema.Struct({ px: Amount, sz: Amount })).check(Schema.isMaxLength(1_000))

/** The levels to set in the book of a coin from now on. */
export const BookChange = Schema.Struct({
  coin: Coin,
  book: Schema.NullOr(Schema.Struct({ bids: BookSide, asks: BookSide })).annotateKey({
    description:
      "The price levels in any order, in place of the sandbox's own orders. They are not renewed and do not follow the price. `null`: the sandbox's own orders again"
  })
}).annotate({
  identifier: "BookChange",
  examples: [{ coin: "BTC", book: { bids: [{ px: "59990", sz: "0.1" }], asks: [] } }]
})
export type BookChange = typeof BookChange.Type

/** The faults to set. Faults that are absent do not change. */
export const FaultChange = Schema.Struct(Struct.map(SandboxFaults.fields, Schema.optionalKey)).annotate({
  identifier: "FaultChange",
  examples: [{ lostReplies: 1 }]
})
export type FaultChange = typeof FaultChange.Type

/** How long the sandbox's venue has no WebSockets. */
export const SocketCut = Schema.Struct({
  downFor: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60_000 })).annotateKey({
    description: "Milliseconds for which the venue refuses new WebSockets"
  })
}).annotate({ identifier: "SocketCut", examples: [{ downFor: 1000 }] })
export type SocketCut = typeof SocketCut.Type

/** The number of bots that start at the same time. */
export const BotStart = Schema.Struct({
  bots: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 }))
}).annotate({ identifier: "BotStart", examples: [{ bots: 100 }] })
export type BotStart = typeof BotStart.Type

/** The queries of bots, and their weight for the venue's rate limit of one IP address. */
export const BotCost = Schema.Struct({
  bots: Schema.Natural,
  queries: Schema.Natural.annotateKey({ description: "Number of queries that the bots sent" }),
  requests: Schema.Natural.annotateKey({ description: "Number of requests that reached the venue" }),
  weightWithout: Schema.Natural.annotateKey({ description: "Weight of the queries if each had reached the venue" }),
  weight: Schema.Natural.annotateKey({ description: "Weight of the requests that reached the venue" }),
  weightPerMinute: Schema.Natural.annotateKey({ description: "Weight that the venue grants an IP address per minute" })
}).annotate({ identifier: "BotCost" })
export type BotCost = typeof BotCost.Type

/** The balances and positions to set for an account. */
export const Endowment = Schema.Struct({
  user: Address,
  usd: Schema.optionalKey(Amount).annotateKey({ description: "USDC for perpetuals" }),
  spot: Schema.optionalKey(
    Schema.Array(Schema.Struct({ token: Schema.Union([Schema.Natural, Coin]), amount: Amount })).check(
      Schema.isMaxLength(100)
    )
  ).annotateKey({ description: "Deposits of spot tokens, each selected by its name (HYPE) or index (150)" }),
  positions: Schema.optionalKey(
    Schema.Array(Schema.Struct({ coin: Coin, size: Amount, entryPx: Schema.optionalKey(Amount) })).check(
      Schema.isMaxLength(100)
    )
  ).annotateKey({
    description: "The new positions. A negative size is a short position. Default entry price: the mark price"
  }),
  volume: Schema.optionalKey(Amount).annotateKey({
    description: "Volume in USDC that the account traded before. It counts only toward the volumes that actions require"
  }),
  requestLimit: Schema.optionalKey(Schema.Natural).annotateKey({
    description: "Number of actions that the account can send in total; each USDC of traded volume adds one"
  })
}).annotate({
  identifier: "Endowment",
  examples: [{
    user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    usd: "10000",
    spot: [{ token: "HYPE", amount: "2000" }]
  }]
})
export type Endowment = typeof Endowment.Type

/** The snapshot to restore. */
export const SandboxReset = Schema.Struct({
  snapshot: Schema.optionalKey(SnapshotId).annotateKey({
    description: "The ID of the snapshot. If absent, the venue's initial state is restored"
  })
}).annotate({ identifier: "SandboxReset", examples: [{}] })
export type SandboxReset = typeof SandboxReset.Type

const errors = [UpstreamUnavailable, NotPermitted, Unauthorized, QuotaExceeded, Overloaded, PayloadTooLarge] as const

const reply = { success: SandboxStatus, error: errors }

export class SandboxApi extends HttpApiGroup.make("sandbox").add(
  HttpApiEndpoint.get("status", Paths.sandbox, reply).annotateMerge(OpenApi.annotations({
    summary: "The sandbox's venue: its seed, time, faults and snapshots"
  })),
  HttpApiEndpoint.post("advance", Paths.sandboxClock, { payload: ClockAdvance, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Advance the venue's time",
      description:
        "Orders are filled and triggered, funding is paid and accounts are liquidated as if the time had passed. The nonces and " +
        "`expiresAfter` of actions are still compared with the machine's clock, which does not change."
    })
  ),
  HttpApiEndpoint.post("setPrices", Paths.sandboxPrices, { payload: PriceChange, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Set the prices of a coin from now on",
      description:
        "A single point sets a constant price. The sandbox's own orders in the book are immediately placed around the new price."
    })
  ),
  HttpApiEndpoint.post("setBook", Paths.sandboxBooks, { payload: BookChange, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Set the levels of a coin's book from now on",
      description: "Orders of accounts that the levels cross are filled immediately. A side without levels is empty."
    })
  ),
  HttpApiEndpoint.post("setFaults", Paths.sandboxFaults, { payload: FaultChange, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Set faults of the venue",
      description: "The seed of the sandbox determines which requests a fault affects."
    })
  ),
  HttpApiEndpoint.post("cutSockets", Paths.sandboxSockets, { payload: SocketCut, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Close the gateway's WebSockets to the venue",
      description: "The gateway reconnects, and recovers the fills and orders that it missed. Callers stay connected."
    })
  ),
  HttpApiEndpoint.post("startBots", Paths.sandboxBots, { payload: BotStart, success: BotCost, error: errors })
    .annotateMerge(OpenApi.annotations({
      summary: "Let bots query the venue through a cache of their own",
      description:
        "Each bot sends the ten queries with which a bot starts: metadata, prices, and the books of five coins. The queries " +
        "pass through the gateway's cache and coalescing, as those to live chains do."
    })),
  HttpApiEndpoint.post("endow", Paths.sandboxAccounts, { payload: Endowment, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Set the balances and positions of an account",
      description: "Creates the account if needed."
    })
  ),
  HttpApiEndpoint.post("snapshot", Paths.sandboxSnapshots, reply).annotateMerge(OpenApi.annotations({
    summary: "Take a snapshot of the venue",
    description:
      "The last ID in the response identifies the new snapshot. A snapshot does not include the EVM chains and the token chain."
  })),
  HttpApiEndpoint.post("reset", Paths.resetSandbox, { payload: SandboxReset, ...reply }).annotateMerge(
    OpenApi.annotations({
      summary: "Restore the venue's initial state or a snapshot",
      description:
        "The venue's time and the faults do not change. The time between the snapshot and now is simulated again."
    })
  )
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Sandbox",
  description:
    "The operator's routes for the clock, prices, faults and accounts of the sandbox's venue. They are served on the " +
    "admin listener, or on the callers' listener if it has a loopback address. A gateway with upstream addresses " +
    "does not have these routes."
})) {}
