/** L1 actions: a phantom agent signs the action's connection id. */
import type { Hex } from "./internal/bytes.ts"
import * as Signable from "./Signable.ts"
import type { VenueProfile } from "./VenueProfile.ts"

const agent = Signable.structType("Agent", [
  { name: "source", type: "string" },
  { name: "connectionId", type: "bytes32" }
])

/** The same on every network; wallets refuse it while connected to another chain. */
const domain = Signable.domain("Exchange", 1337)

/** What signs an L1 action whose `ActionHash.hash` is `connectionId` (32 bytes). */
export const signable = (profile: VenueProfile, connectionId: Hex): Signable.Signable => ({
  domain,
  struct: agent,
  members: [
    { name: "source", type: "string", value: profile.source },
    { name: "connectionId", type: "bytes32", value: connectionId }
  ]
})
