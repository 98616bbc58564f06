/**
 * The settings of a sandbox. They apply if no upstream URL is set.
 *
 * This module loads nothing of `@trigate/sandbox`, which is installed only where a gateway serves the sandbox. A test
 * compares the defaults with those of the sandbox.
 */
import { CandleInterval, coinPattern } from "@trigate/domain/candles/Candle"
import { longestLatency, Share } from "@trigate/domain/unstable/Sandbox"
import * as Setting from "@trigate/domain/unstable/Setting"
import type { Options } from "@trigate/sandbox/SandboxState"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

const Text = Schema.String.check(
  Setting.filtered("1 to 100 printable characters", (text) => /^[ -~]{1,100}$/u.test(text))
)

const instant = /^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?Z$/u

const FeedUrl = Schema.RedactedFromValue(Schema.String.check(Setting.isBaseUrl))

const Instant = Schema.String.check(Schema.isPattern(instant)).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

const Speed = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))

const Latency = Setting.Age.check(
  Schema.makeFilter((latency) => Duration.toMillis(latency) <= longestLatency ? undefined : "at most a minute")
)

const ShareText = Schema.FiniteFromString.pipe(Schema.decodeTo(Share))

const priceSource = new RegExp(
  `^(?<coin>${coinPattern}):(?<interval>[0-9]+[mhdwM])(?:=(?<file>.+\\.(?:csv|ndjson|parquet)))?$`,
  "u"
)

/**
 * The name of a coin's recorded bars: `coin:interval` for bars in the candle archive, `coin:interval=file` for bars in
 * a file.
 */
const PriceSource = Schema.String.check(Schema.isPattern(priceSource)).pipe(
  Schema.decodeTo(
    Schema.Struct({ coin: Schema.String, interval: Schema.String, file: Schema.optionalKey(Schema.String) }),
    {
      decode: SchemaGetter.transform((text) => {
        const { coin = "", file, interval = "" } = priceSource.exec(text)?.groups ?? {}
        return { coin, interval, ...(file === undefined ? {} : { file }) }
      }),
      encode: SchemaGetter.transform(({ coin, file, interval }) =>
        `${coin}:${interval}${file === undefined ? "" : `=${file}`}`
      )
    }
  ),
  Schema.decodeTo(
    Schema.Struct({ coin: Schema.String, interval: CandleInterval, file: Schema.optionalKey(Schema.String) })
  )
)

/** The decoded name of a coin's recorded bars. As text, the name is `BTC:1m`, for example. */
export type PriceSource = typeof PriceSource.Type

const shared = { group: "Sandbox", needsRestart: true } as const

/** Declares the probability of a fault. */
const probability = (name: string, meaning: string) =>
  Setting.withDefault(name, ShareText, "0", { ...shared, meaning, takes: "a number from 0 (never) to 1 (always)" })

/** The settings, by member name in a configuration file. */
export const settings = {
  sandboxSeed: Setting.withDefault("TRIGATE_SANDBOX_SEED", Text, "trigate", {
    ...shared,
    meaning: "seed that, together with the clock, determines all generated data of the sandbox",
    takes: "1 to 100 printable characters"
  }),
  sandboxClock: Setting.optional("TRIGATE_SANDBOX_CLOCK", Instant, {
    ...shared,
    meaning:
      "fixed time of the sandbox's venue; only `POST /admin/sandbox/clock` advances it. With a fixed time, the same actions " +
      "have the same results in every run. Nonces, `expiresAfter` and the other chains still use the machine's clock",
    takes: "a UTC time such as `2026-01-05T12:00:00Z`"
  }, "unset: the clock runs"),
  sandboxPrices: Setting.list(
    "TRIGATE_SANDBOX_PRICES",
    Setting.nonEmptyWords(PriceSource),
    {
      ...shared,
      meaning:
        "recorded bars that the sandbox replays as prices, beginning when it starts. Bars without a file come from " +
        "the candle archive in the database of `TRIGATE_DATABASE_URL`",
      takes:
        "comma-separated entries: `coin:interval`, or `coin:interval=file` with a CSV, ndjson or Parquet file, such " +
        "as `BTC:1m=btc.csv`"
    },
    "unset: generated from the seed"
  ),
  sandboxFeedUrl: Setting.optional("TRIGATE_SANDBOX_FEED_URL", FeedUrl, {
    ...shared,
    meaning:
      "base URL of the venue whose market the sandbox follows, with queries and subscriptions only; orders are matched on paper",
    takes: "an http or https URL such as `https://api.hyperliquid.xyz`"
  }, "unset: generated from the seed"),
  sandboxSpeed: Setting.withDefault("TRIGATE_SANDBOX_SPEED", Speed, "1", {
    ...shared,
    meaning: "speed of the sandbox's prices relative to real time",
    takes: "a number from 1 to 1000"
  }),
  sandboxLatency: Setting.withDefault("TRIGATE_SANDBOX_LATENCY", Latency, "0s", {
    ...shared,
    meaning: "latency of actions and queries at the sandbox's venue",
    takes: `${Setting.duration}, at most a minute`
  }),
  sandboxLostReplies: probability(
    "TRIGATE_SANDBOX_LOST_REPLIES",
    "probability that the sandbox's venue executes an action without sending a reply, so that the caller does not know the outcome"
  ),
  sandboxLostRequests: probability(
    "TRIGATE_SANDBOX_LOST_REQUESTS",
    "probability that an action does not reach the sandbox's venue, while the caller does not know the outcome"
  ),
  sandboxRateLimited: probability(
    "TRIGATE_SANDBOX_RATE_LIMITED",
    "probability that the sandbox's venue refuses an action or a query with HTTP 429"
  ),
  sandboxRejectedLegs: probability(
    "TRIGATE_SANDBOX_REJECTED_LEGS",
    "probability that the sandbox's venue rejects an order for insufficient margin; applies to each order of an action separately"
  ),
  sandboxDroppedSockets: probability(
    "TRIGATE_SANDBOX_DROPPED_SOCKETS",
    "probability, in each second, that the sandbox closes a caller's WebSocket without a close frame"
  ),
  sandboxAccounts: Setting.withDefault("TRIGATE_SANDBOX_ACCOUNTS", Setting.Count, "10000", {
    ...shared,
    meaning:
      "maximum number of accounts of the sandbox's venue; transfers that would create one more account are refused",
    takes: Setting.count
  }),
  sandboxFills: Setting.withDefault("TRIGATE_SANDBOX_FILLS", Setting.Count, "10000", {
    ...shared,
    meaning:
      "number of latest fills stored for each account of the sandbox's venue. When an account has twice as many, the older half is removed. A fill takes about 1 KiB",
    takes: Setting.count
  })
}

/**
 * Converts the settings to the options of a sandbox. The options `prices` and `feed` are not included, because the
 * caller reads the recorded prices and opens the feed separately.
 */
export const toOptions = (decoded: Setting.Values<typeof settings>): Omit<Options, "feed" | "prices"> => ({
  seed: decoded.sandboxSeed,
  stoppedAt: Option.getOrUndefined(Option.map(decoded.sandboxClock, DateTime.toEpochMillis)),
  speed: decoded.sandboxSpeed,
  limits: { accounts: decoded.sandboxAccounts, fills: decoded.sandboxFills },
  faults: {
    latency: Duration.toMillis(decoded.sandboxLatency),
    lostReplies: decoded.sandboxLostReplies,
    lostRequests: decoded.sandboxLostRequests,
    rateLimited: decoded.sandboxRateLimited,
    rejectedLegs: decoded.sandboxRejectedLegs,
    droppedSockets: decoded.sandboxDroppedSockets
  }
})
