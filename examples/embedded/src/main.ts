import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Layer2Chain from "@trigate/layer2/Layer2Chain"
import { coins, keys, transactions } from "@trigate/sandbox/SandboxExamples"
import * as Trading from "@trigate/trading/Trading"
import { ConfigProvider, Console, Effect, Layer } from "effect"
import * as Report from "./Report.ts"

// the addresses are those of the TRIGATE_…_URL variables
const chains = Layer.merge(Trading.layerConfig(), Layer2Chain.layerConfig())

// a gateway with its sandbox on this machine, where the environment names no upstream
const defaults = ConfigProvider.layerAdd(ConfigProvider.fromUnknown({
  TRIGATE_TRADING_API_URL: "http://127.0.0.1:8080",
  TRIGATE_TRADING_NODE_URL: "http://127.0.0.1:8080/any-key",
  TRIGATE_LAYER2_URL: "http://127.0.0.1:8080/any-key"
}))

const program = Effect.gen(function*() {
  yield* Console.log(yield* Report.bars(coins.perpetual, 30))
  yield* Effect.forEach(yield* Report.pairs(coins.spotByName), (line) => Console.log(line))
  yield* Console.log(yield* Report.cost(keys.trader.address))
  yield* Console.log(yield* Report.receipt(transactions.opStack))
})

NodeRuntime.runMain(Effect.provide(program, chains.pipe(Layer.provide(defaults))))
