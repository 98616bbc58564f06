/** What a caller of the backend gets when a chain fails: one answer for each group of errors. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { coins, keys, transactions } from "@trigate/sandbox/SandboxExamples"
import type { Signer } from "@trigate/signing/Signer"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpApiTest from "effect/http-api/HttpApiTest"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { BackendApi } from "../src/Api.ts"
import { CandleArchive } from "../src/CandleArchive.ts"
import * as Handlers from "../src/Handlers.ts"
import { Staking } from "../src/Staking.ts"
import { passing } from "./passing.ts"
import { mistaken, trader } from "./signers.ts"
import { broken, type Chains, down, over, rateLimited, sandbox } from "./upstreams.ts"

const now = Date.UTC(2026, 0, 10, 12)
const bars = { coin: coins.perpetual, interval: "1m", startTime: now - 600_000 } as const
const stake = { validator: keys.validator.address, hype: "1.5" }

/** The handlers over some chains, called without a socket. */
const deskOver = (chains: Chains, signer: Layer.Layer<Signer> = trader) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(now)
    const folder = yield* FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped())
    const handlers = Handlers.layer.pipe(
      Layer.provide([CandleArchive.layer(folder), Staking.layer]),
      Layer.provide([chains, signer])
    )
    return yield* HttpApiTest.groups(BackendApi, ["desk"]).pipe(
      Effect.map(({ desk }) => desk),
      Effect.provide(yield* Layer.build(handlers))
    )
  })

describe("the backend's API", () => {
  it.effect("answers what the chains did", () =>
    Effect.gen(function*() {
      const client = yield* deskOver(sandbox())
      const { bars: count, isWhole } = yield* client.archive({ payload: bars })
      assert.deepStrictEqual({ count, isWhole }, { count: 10, isWhole: true })
      assert.deepStrictEqual(yield* client.stake({ payload: stake }), { nonce: now })
      const { status } = yield* client.deposit({ params: { hash: transactions.opStack } })
      assert.strictEqual(status, "success")
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))

  it.effect("says when to try again", () =>
    Effect.gen(function*() {
      const limited = yield* deskOver(over(() => rateLimited).layer)
      assert.deepInclude(yield* Effect.flip(limited.archive({ payload: bars })), {
        _tag: "TryLater",
        detail: "trading-api responded with HTTP 429: slow down",
        retryAfter: 60
      })
      const { layer, sent } = over(() => down)
      const away = yield* deskOver(layer)
      const error = yield* passing(Effect.flip(away.archive({ payload: bars })))
      assert.strictEqual(error._tag, "TryLater")
      assert.lengthOf(sent, 3)
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))

  it.effect("refuses what would be refused again, in the chain's words", () =>
    Effect.gen(function*() {
      const client = yield* deskOver(sandbox())
      assert.deepInclude(yield* Effect.flip(client.archive({ payload: { ...bars, coin: coins.unknown } })), {
        _tag: "Refused",
        code: "UnknownAsset",
        detail: `The venue knows no coin "${coins.unknown}"`
      })
      assert.deepInclude(yield* Effect.flip(client.stake({ payload: { ...stake, hype: "0.000000001" } })), {
        _tag: "Refused",
        code: "UnrepresentableHype"
      })
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))

  it.effect("keeps to itself how it is set up wrongly", () =>
    Effect.gen(function*() {
      const { layer, sent } = over(() => down)
      const client = yield* deskOver(layer, mistaken)
      const error = yield* Effect.flip(client.stake({ payload: stake }))
      assert.strictEqual(JSON.stringify(error), `{"_tag":"Misconfigured"}`)
      assert.lengthOf(sent, 0)
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))

  it.effect("tells an outcome that nobody knows from a failure", () =>
    Effect.gen(function*() {
      const { layer, sent } = over(() => broken)
      const client = yield* deskOver(layer)
      const error = yield* passing(Effect.flip(client.stake({ payload: stake })))
      assert.strictEqual(error._tag, "StillOpen")
      assert.lengthOf(sent, 7)
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))

  it.effect("waits for a receipt, and not for ever", () =>
    Effect.gen(function*() {
      const client = yield* deskOver(sandbox())
      // the sandbox mines it ten seconds after its start
      const mined = yield* passing(client.deposit({ params: { hash: transactions.pending } }))
      assert.strictEqual(mined.status, "success")
      const never = { params: { hash: transactions.unknown } }
      assert.deepInclude(yield* passing(Effect.flip(client.deposit(never))), {
        _tag: "StillOpen",
        detail: `No receipt of ${transactions.unknown} within 30000 ms`
      })
      const away = yield* deskOver(over(() => down).layer)
      assert.strictEqual((yield* passing(Effect.flip(away.deposit(never))))._tag, "StillOpen")
    }).pipe(Effect.provide(NodeHttpServer.layerHttpServices)))
})
