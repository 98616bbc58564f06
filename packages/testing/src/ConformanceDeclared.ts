/**
 * Checks every typed operation: the response to the operation's example request must match the operation's response
 * schema.
 */
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import { holds, succeeds } from "./ConformanceCheck.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"

type DeclaredCall = (request: unknown) => Effect.Effect<unknown, { readonly _tag: string }>

const isCall = (value: unknown): value is DeclaredCall => Predicate.isFunction(value)

const tables = { info: infoOperations, evm: evmOperations, layer2: layer2Operations } as const

const makeChecks = (group: keyof typeof tables, methods: object): ReadonlyArray<ConformanceCheck> =>
  Object.entries<Operation<string, "read">>(tables[group]).map(([name, { example, request, response }]) => ({
    name: `${group}.${name} responds to its example request`,
    effect: Effect.gen(function*() {
      const method: unknown = Reflect.get(methods, name)
      if (!isCall(method)) return yield* holds(`a method ${name}`, false, method)
      const answer = yield* succeeds(method(yield* Effect.orDie(Schema.decodeUnknownEffect(request)(example))))
      // the result of `candleSnapshot` does not match the response schema, because it also reports missing bars
      if (name !== "candleSnapshot") {
        yield* holds("a response that matches the schema", Schema.is(response)(answer), answer)
      }
    })
  }))

/** Returns the checks of all typed operations. */
export const checks = ({ evm, info, layer2 }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => [
  ...makeChecks("info", info),
  ...makeChecks("evm", evm),
  ...makeChecks("layer2", layer2)
]
