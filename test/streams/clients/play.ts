/** What happens at the venue while a client listens: the same each time. */
import { keys } from "@trigate/sandbox/SandboxExamples"
import type { FakeVenue } from "../fakeVenue.ts"
import type { Command } from "../venue/control.ts"

export const user = keys.trader.address

/** What a client was given, in order. */
export type Payloads = ReadonlyArray<readonly [what: string, data: unknown]>

/** Lets a client listen at a base URL while the venue plays, whose clock begins at the given time. */
export type Client = (baseUrl: string, venue: FakeVenue, at: number) => Promise<Payloads>

/** The venue as new, with a past. */
export const begin = (venue: FakeVenue, millis: number) =>
  venue.run(
    { do: "reset", seed: 11 },
    { do: "set-clock", millis },
    { do: "trader", user },
    { do: "trade", coin: "BTC", count: 5 },
    { do: "trade", coin: "ETH", count: 3 },
    { do: "fill", user, coin: "BTC", count: 3 },
    { do: "place", user, coin: "ETH" },
    { do: "funding", user },
    { do: "transfer", user },
    { do: "twap", user }
  )

/** What happens while they listen. */
export const acts: ReadonlyArray<Command> = [
  { do: "trade", coin: "BTC", count: 3 },
  { do: "states", coin: "BTC" },
  { do: "fill", user, coin: "BTC", cloid: "0x00000000000000000000000000000007" },
  { do: "modify", user, first: "open" },
  { do: "modify", user, first: "cancel" },
  { do: "cancel", user },
  { do: "place", user, coin: "BTC", status: "badAloPxRejected" },
  { do: "place", user, coin: "BTC", status: "futureStatus" },
  { do: "funding", user },
  { do: "transfer", user },
  { do: "twap", user },
  { do: "notify", user },
  { do: "switches", set: { extraFields: true } },
  { do: "fill", user, coin: "@107" },
  { do: "trade", coin: "BTC" },
  { do: "states" },
  { do: "switches", set: { isSnapshot: "false" } },
  { do: "fill", user, coin: "ETH" }
]

/** The trade by which a client knows that nothing is left: on every connection the frames keep their order. */
export const last: Command = { do: "trade", coin: "SOL" }
