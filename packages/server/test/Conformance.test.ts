import { assert, describe, it } from "@effect/vitest"
import * as GatewayClient from "@trigate/client/GatewayClient"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { coins, contracts as wrapped, tokens as examples } from "@trigate/sandbox/SandboxExamples"
import * as Conformance from "@trigate/testing/Conformance"
import type { ConformanceTarget } from "@trigate/testing/Conformance"
import { gateway } from "@trigate/testing/Gateway"
import { isExhaustive } from "@trigate/testing/Sample"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Tokens from "@trigate/tokens/Tokens"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Trading from "@trigate/trading/Trading"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** An address that nothing has checked, as a caller without types may send it. */
const unchecked = Schema.String.pipe(Schema.brand("TonAddress"))

const services = Effect.gen(function*() {
  return {
    exchange: yield* Exchange,
    info: yield* Info,
    evm: yield* TradingEvm,
    tokens: yield* TokenChain,
    layer2: yield* Layer2
  }
})

/** The live services in front of a gateway, as anyone embeds them in front of the real upstreams. */
const live = (url: string) => {
  const addresses = [`${url}/key`]
  return Layer.mergeAll(
    Trading.layer({ network: "mainnet", addresses: { api: [url], node: addresses } }),
    Tokens.layer({ addresses }),
    Layer2Chain.layer({ addresses })
  )
}

const inMemory = Effect.provide(services, Sandbox.layer())

const liveInFrontOfAGateway = Effect.gen(function*() {
  const { url } = yield* gateway({})
  return yield* Effect.provide(services, yield* Layer.build(live(url)))
})

const clientOfAGatewayInFrontOfAGateway = Effect.gen(function*() {
  const behind = yield* gateway({})
  const front = yield* gateway({
    TRIGATE_TRADING_API_URL: behind.url,
    TRIGATE_TRADING_NODE_URL: `${behind.url}/key`,
    TRIGATE_TOKEN_CHAIN_URL: `${behind.url}/key`,
    TRIGATE_LAYER2_URL: `${behind.url}/key`
  })
  const context = yield* Layer.build(
    GatewayClient.layer({ baseUrl: front.url }).pipe(Layer.provide(FetchHttpClient.layer))
  )
  return yield* Effect.provide(GatewayClient.GatewayClient, context)
})

const targets = {
  "the sandbox in memory": inMemory,
  "live services in front of a gateway": liveInFrontOfAGateway,
  "the client of a gateway in front of a gateway": clientOfAGatewayInFrontOfAGateway
}

/** What a call ended in; an error is compared by its class and its fields. */
const outcome = <A, E extends object>(call: Effect.Effect<A, E>) =>
  Effect.match(call, {
    onSuccess: (value): unknown => value,
    onFailure: (error): unknown => ({ [error.constructor.name]: { ...error } })
  })

/** Calls whose outcomes follow from the seed alone. */
const fixed = ({ evm, info, tokens }: ConformanceTarget) => {
  const at = (address: string) => ({ address: unchecked.make(address) })
  const { invalid, ...contracts } = examples
  return Effect.all({
    spotMeta: outcome(info.spotMeta()),
    unknownCoin: outcome(info.candleSnapshot({ coin: coins.unknown, interval: "1h", startTime: 0 })),
    storage: outcome(evm.getStorageAt({ address: wrapped.wrapped, slot: "0x1" })),
    tokens: Effect.forEach(Object.values(contracts), (address) => outcome(tokens.getTokenData(at(address)))),
    invalid: outcome(tokens.getTokenData(at(invalid))),
    detected: outcome(tokens.detectAddress(at(contracts.wallet)))
  })
}

describe("one suite, the same results", () => {
  // the client of a gateway in front of a gateway passes through live services, too
  const checked = Object.entries(targets).filter(([, target]) => isExhaustive || target !== liveInFrontOfAGateway)
  for (const [name, target] of checked) {
    it.live(name, () =>
      Effect.gen(function*() {
        const checks = Conformance.conformance(yield* target)
        assert.isAbove(checks.length, 40)
        const failed: Array<string> = []
        // the checks share the state of their chains, so they run one after the other
        for (const { effect, name } of checks) {
          yield* effect.pipe(
            Effect.catch((failure) => Effect.sync(() => failed.push(`${name}: ${failure.message}`)))
          )
        }
        assert.deepStrictEqual(failed, [])
      }))
  }

  it.live("values and errors are the same ones, whatever lies between", () =>
    Effect.gen(function*() {
      const [memory, ...others] = yield* Effect.forEach(
        Object.values(targets),
        (target) => Effect.flatMap(target, fixed)
      )
      for (const other of others) assert.deepStrictEqual(other, memory)
    }))
})
