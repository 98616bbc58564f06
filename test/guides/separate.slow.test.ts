/** Every block of the guides in a process of its own, as a reader runs it; `guides.test.ts` runs those of a document in one. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { documents, runWithGateways } from "./documents.ts"
import { separate } from "./run.ts"

// side by side, since some programs wait
describe.concurrent("does what it shows, each block for itself:", () => {
  for (const document of documents.filter(({ programs }) => programs.some(({ excuse }) => excuse === undefined))) {
    it.live(
      document.path,
      () => Effect.map(runWithGateways(document, separate), (wrong) => assert.strictEqual(wrong, ""))
    )
  }
})
