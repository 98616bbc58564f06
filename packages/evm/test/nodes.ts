/** The reads of the gateway over a modelled chain, and calls of them. */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { EvmBackend } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods, serving } from "@trigate/domain/evm/Layer2Operations"
import * as GatewayReads from "@trigate/evm/unstable/EvmFeed"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import type { EvmChain } from "@trigate/testing/EvmChain"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scripted from "../../upstream/test/scripted.ts"

/** A transport to a node of the chain. */
export const nodeOf = (chain: EvmChain) => Scripted.make(({ body }) => Scripted.answer(200, chain.respond(body)))

const targets = Scripted.targets("a")

/** The backend of a gateway over the transport of the context. */
export const gateway = (bounds: GatewayReads.Bounds = {}) =>
  Effect.flatMap(
    EvmUpstream.make({ upstream: { label: "layer2", addresses: [] }, targetsOf: () => Result.succeed(targets) }),
    (node) => GatewayReads.makeGatewayReads(node, { ...bounds, serving, label: "layer2" })
  )

const operations = new Map(layer2Methods.map((operation) => [operation.name, operation]))

/** Calls a method of a backend; returns the result, or the error object. */
export const call = ({ read }: EvmBackend, method: string, ...params: ReadonlyArray<unknown>) =>
  Effect.suspend(() => {
    const operation = operations.get(method)
    if (operation?.class !== "read") throw new Error(`no read ${method}`)
    return Effect.map(
      read({ operation, params: Json.write(params), request: params, surface: "gateway" }),
      (answer) => answer._tag === "Result" ? answer.result.valueOrUndefined : answer.error.valueOrUndefined
    )
  })
