import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys, tokens } from "@trigate/sandbox/SandboxExamples"
import { Console, Effect, Layer } from "effect"
import * as Signer from "./Signer.ts"
import * as Treasury from "./Treasury.ts"

const program = Effect.gen(function*() {
  const treasury = yield* Treasury.Treasury
  yield* Console.log(yield* treasury.supply(tokens.onchain))
  const order = { validator: keys.validator.address, wei: 100_000_000n, floor: "1" }
  yield* Console.log(yield* treasury.stake(order))
})

// chains in memory; live layers take their place without a change to the treasury
const treasury = Treasury.layer.pipe(Layer.provide([Sandbox.layer(), Signer.layerTestKey(keys.trader)]))

NodeRuntime.runMain(Effect.provide(program, treasury))
