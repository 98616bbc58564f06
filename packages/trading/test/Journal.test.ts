import { describe } from "@effect/vitest"
import * as Journal from "@trigate/trading/Journal"
import * as Effect from "effect/Effect"
import { suite } from "./journalSuite.ts"

describe("Journal in memory", () => {
  suite((options) => Effect.succeed(Journal.layerMemory(options)))
})
