/** A team's test: its own code over the services of the packages, with layers in memory. */
import { assert, it } from "@effect/vitest"
import { UnknownAsset } from "@trigate/domain/errors/GatewayError"
import { spotMeta } from "@trigate/domain/info/InfoOperations"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Signer from "@trigate/signing/Signer"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as Info from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import { placedByService } from "./orders.ts"

const firstToken = Info.Info.use(({ spotMeta }) => spotMeta()).pipe(Effect.map(({ tokens }) => tokens[0]?.name))

it.effect("reads from the sandbox", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* firstToken, "USDC")
  }).pipe(Effect.provide(Sandbox.layer())))

it.effect("reads what the test sets, and fails with the class that the packages export", () =>
  Effect.gen(function*() {
    const { respond } = yield* Info.InfoState
    yield* respond(spotMeta, () => Effect.succeed({ universe: [], tokens: [] }))
    assert.isUndefined(yield* firstToken)
    const failure = yield* Effect.flip(
      Info.Info.use(({ candleSnapshot }) => candleSnapshot({ coin: "NOSUCHCOIN", interval: "1d", startTime: 0 }))
    )
    assert.instanceOf(failure, UnknownAsset)
  }).pipe(Effect.provide(Info.layerMemory())))

it.effect("places orders and reads the entry of each", () =>
  Effect.gen(function*() {
    const { response: respond } = yield* ExchangeMemory.ExchangeState
    const statuses = [{ resting: { oid: 7 } }, { error: "Insufficient margin to place order. asset=0" }]
    yield* Ref.set(respond, Effect.succeed(ExchangeMemory.acceptedWith({ type: "order", data: { statuses } })))
    assert.deepStrictEqual(yield* placedByService, [
      "rests as 7",
      "InsufficientMargin: Insufficient margin to place order. asset=0"
    ])
  }).pipe(
    Effect.provide([
      ExchangeMemory.layer(),
      Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey)),
      NonceSource.layerMemory()
    ])
  ))
