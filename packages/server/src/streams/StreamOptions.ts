/** The options of streams, from the settings. */
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../settings/Settings.ts"

/** Returns the limits of streams. */
export const toLimits = (settings: Settings) => ({
  connections: settings.streamConnections,
  newConnections: settings.streamNewConnections,
  subscriptions: settings.streamSubscriptions,
  users: settings.streamUsers,
  usersOfCaller: settings.streamCallerUsers,
  messages: settings.streamMessages,
  grace: settings.streamGrace
})

/** Returns the watched accounts, and the bounds of their event logs. */
export const toEventLog = ({ eventLogAge, eventLogRows, watchAccounts }: Settings) => ({
  accounts: watchAccounts.map(lowerCase),
  bounds: { rows: eventLogRows, age: Duration.toMillis(eventLogAge) }
})

/** Returns the WebSocket URLs of the official API: `wss://host/ws` for `https://host`. */
export const toAddresses = ({ tradingApiUrl }: Settings): ReadonlyArray<Redacted.Redacted> =>
  Upstream.make("trading-api", tradingApiUrl).addresses.map((address) =>
    Redacted.make(`${Redacted.value(address).replace(/^http/u, "ws")}/ws`, { label: "trading-api" })
  )
