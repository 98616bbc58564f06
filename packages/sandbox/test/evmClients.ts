/** The sandbox's two EVM chains, each behind a viem client. */
import { assert } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { CallError } from "@trigate/domain/errors/GatewayError"
import { evmMethods, methodNotFound } from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type { CustomTransport, PublicClient } from "viem"
import { createPublicClient, custom } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { start } from "./venue.ts"

export const trader = privateKeyToAccount(keys.trader.privateKey)

/** Runs a test on a fresh sandbox whose clock stands at `start`. */
export const test = <A, E>(effect: Effect.Effect<A, E, Sandbox.Services>) =>
  Effect.andThen(TestClock.setTime(start), Effect.provide(effect, Sandbox.layer()))

const answered = (answer: RpcResponse): Promise<unknown> =>
  answer._tag === "Result"
    ? Promise.resolve(JSON.parse(answer.result.text))
    : Promise.reject(Object.assign(new Error(answer.message), JSON.parse(answer.error.text)))

/** See {@link clients}. */
export interface Clients {
  readonly evm: PublicClient<CustomTransport>
  readonly layer2: PublicClient<CustomTransport>
}

/** A client per chain, whose calls go to the services. */
export const clients: Effect.Effect<Clients, never, Layer2 | TradingEvm> = Effect.gen(function*() {
  const evm = yield* TradingEvm
  const layer2 = yield* Layer2
  const run = Effect.runPromiseWith(yield* Effect.context())
  const clientOf = <Operation extends { readonly name: string }>(
    operations: ReadonlyArray<Operation>,
    relay: (operation: Operation, params: string) => Effect.Effect<RpcResponse, CallError>
  ) =>
    createPublicClient({
      transport: custom({
        request: ({ method, params }: { readonly method: string; readonly params?: unknown }) => {
          const operation = operations.find(({ name }) => name === method)
          return operation === undefined
            ? answered(methodNotFound(method))
            : run(relay(operation, JSON.stringify(params ?? []))).then(answered)
        }
      }, { retryCount: 0 })
    })
  return {
    evm: clientOf(
      evmMethods,
      (operation, params) => evm.relay({ operation, params: Json.strict(params), surface: "gateway" })
    ),
    layer2: clientOf(
      layer2Methods,
      (operation, params) => layer2.relay({ operation, params: Json.strict(params), surface: "gateway" })
    )
  }
})

/** The value of a promise. */
export const call = <A>(promise: () => Promise<A>) => Effect.promise(promise)

/** The text of the error that a promise is rejected with. */
export const refusal = (promise: () => Promise<unknown>) =>
  call(() => promise().then(() => assert.fail("It was taken"), (error: unknown) => String(error)))
