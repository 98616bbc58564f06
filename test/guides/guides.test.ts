/** Every block of the guides is run as a reader would run it, against a gateway with its sandbox. */
import { assert, describe, it } from "@effect/vitest"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { excused, read } from "./blocks.ts"
import { notRun } from "./notRun.ts"
import { needsFront, root, run } from "./run.ts"
import { check } from "./types.ts"

const paths = ["README.md", "docs/cli.md", ...fs.globSync(["docs/guides/*.md", "examples/*/README.md"], { cwd: root })]

const documents = paths.toSorted().map((file) => read(file, fs.readFileSync(path.join(root, file), "utf8")))

const excuses = documents.flatMap(excused)

describe("the blocks of the guides", () => {
  it("are programs, or the output of the program before them", () => {
    assert.isAtLeast(documents.length, 10)
    assert.deepStrictEqual(documents.flatMap(({ faults }) => faults), [])
  })

  it("are all run but those that are known, each for a reason", () => {
    for (const excuse of excuses) console.log(`not run: ${excuse}`)
    assert.deepStrictEqual(excuses.toSorted(), notRun.toSorted())
  })

  it.live("have the types that the packages want", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* check(documents), [])
    }))
})

// side by side, since some programs wait: a client for its own rate limit, another until it polls again
describe.concurrent("does what it shows, line after line:", () => {
  for (const document of documents.filter(({ programs }) => programs.some(({ excuse }) => excuse === undefined))) {
    it.live(document.path, () =>
      Effect.gen(function*() {
        const { url: sandbox } = yield* hostedGateway({ TRIGATE_ACCESS_LOG: "off" })
        // a process of its own, because its metrics are shown
        const gateways = needsFront(document)
          ? {
            sandbox,
            front: (yield* gatewayProcess({ TRIGATE_ACCESS_LOG: "off", TRIGATE_TRADING_API_URL: sandbox })).url
          }
          : { sandbox }
        assert.deepStrictEqual((yield* run(document, gateways)).join("\n"), "")
      }))
  }
})
