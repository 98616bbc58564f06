/** The responses of an in-memory service. A test sets them for each operation. */
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Encoding.ts"
import { type AnyCodec, decodeValue, type Operation, type ReadOperation } from "./Operation.ts"

/** Sets the response to an operation: `answer(blockNumber, () => Effect.succeed(1n))`. */
export type SetAnswer = <Request extends AnyCodec, Response extends AnyCodec, Failures extends ReadonlyArray<AnyCodec>>(
  operation: Operation<string, "read", Request, Response, Failures>,
  respond: (request: Request["Type"]) => Effect.Effect<Response["Type"], Failures[number]["Type"]>
) => Effect.Effect<void>

/** The responses of an in-memory service, by operation. */
export interface MemoryAnswers {
  readonly answer: SetAnswer
  /**
   * Returns the encoded response to an encoded request. Fails with `unset` if no response was set, and with `failed` if
   * the test set a failure.
   */
  readonly ask: (operation: ReadOperation, request: unknown) => Effect.Effect<Json.Json, "unset" | "failed">
}

/** Makes a `MemoryAnswers` without responses. */
export const make: Effect.Effect<MemoryAnswers> = Effect.gen(function*() {
  const known = yield* Ref.make<ReadonlyMap<string, (request: unknown) => Effect.Effect<Json.Json, "failed">>>(
    new Map()
  )
  return {
    answer: (operation, respond) => {
      const decode = decodeValue(operation.request)
      const encode = Schema.encodeEffect<AnyCodec>(operation.response)
      const ask = (request: unknown) =>
        Effect.flatMap(decode(request), respond).pipe(
          Effect.mapError(() => "failed" as const),
          // a response that does not encode is a mistake in the test
          Effect.flatMap((response) => Effect.orDie(encode(response))),
          Effect.map(Json.write)
        )
      return Ref.update(known, (answers) => new Map(answers).set(operation.name, ask))
    },
    ask: ({ name }, request) =>
      Effect.flatMap(Ref.get(known), (answers) => answers.get(name)?.(request) ?? Effect.fail("unset" as const))
  }
})
