/** Every block of the guides is run as a reader would run it, against a gateway with its sandbox. */
import { assert, describe, it } from "@effect/vitest"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import type { Document } from "./blocks.ts"
import { excused } from "./blocks.ts"
import { documents, runWithGateways } from "./documents.ts"
import { notRun } from "./notRun.ts"
import { checkout } from "./run.ts"

const excuses = documents.flatMap(excused)

describe("the blocks of the guides", () => {
  it("are programs, or the output of the program before them", () => {
    assert.isAtLeast(documents.length, 10)
    assert.deepStrictEqual(documents.flatMap(({ faults }) => faults), [])
  })

  it("run TypeScript with the repository's Node, which a reader's own may be too old for", () => {
    const bare = documents.flatMap(({ path, programs }) =>
      programs.flatMap(({ line, text }) =>
        /(?<!npx -- )\bnode \S+\.ts/u.test(text) ? [`${path}:${line}: write npx -- node`] : []
      )
    )
    assert.deepStrictEqual(bare, [])
  })

  it("are all run but those that are known, each for a reason", () => {
    for (const excuse of excuses) console.log(`not run: ${excuse}`)
    assert.deepStrictEqual(excuses.toSorted(), notRun.toSorted())
  })
})

const isFirstRead = ({ path }: Document): boolean => path === "README.md"

const runnable = documents.filter(({ programs }) => programs.some(({ excuse }) => excuse === undefined))
const others = runnable.filter((document) => !isFirstRead(document))

// side by side, since some programs wait: a client for its own rate limit, another until it polls again
describe.concurrent("does what it shows, line after line:", () => {
  for (const document of [...runnable.filter(isFirstRead), ...sample("documents", others, 1)]) {
    it.live(
      document.path,
      () => Effect.map(runWithGateways(document, checkout), (wrong) => assert.strictEqual(wrong, ""))
    )
  }
})
