import { describe } from "@effect/vitest"
import * as UsedNonces from "@trigate/trading/UsedNonces"
import * as Effect from "effect/Effect"
import { suite } from "./usedNoncesSuite.ts"

describe("UsedNonces in memory", () => {
  suite((options) => Effect.succeed(UsedNonces.layerMemory(options)))
})
