/** What each typed operation declares, whichever it is: it reads what the upstream writes, and loses nothing of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import { passthroughQueries } from "@trigate/domain/unstable/info/InfoQueries"
import { table } from "@trigate/domain/unstable/streams/Subscriptions"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { Answers } from "./answers.ts"
import { evmAnswers, infoAnswers, layer2Answers } from "./answers.ts"

const tables: ReadonlyArray<
  readonly [
    route: string,
    operations: { readonly [name: string]: Operation<string, "read"> },
    answers: { readonly [name: string]: Answers }
  ]
> = [["/info", infoOperations, infoAnswers], ["/evm", evmOperations, evmAnswers], [
  "/l2",
  layer2Operations,
  layer2Answers
]]

it("no type of query is declared twice", () => {
  assert.deepStrictEqual(Object.keys(passthroughQueries).filter((type) => type in infoOperations), [])
})

/** The members of a schema's objects that may be absent, but not `null`. */
const notNull = (ast: SchemaAST.AST, path: string, seen: Set<SchemaAST.AST>): ReadonlyArray<string> => {
  if (seen.has(ast)) return []
  seen.add(ast)
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap((each) => notNull(each, path, seen))
  if (SchemaAST.isArrays(ast)) {
    return [...ast.elements, ...ast.rest].flatMap((each) => notNull(each, `${path}[]`, seen))
  }
  if (!SchemaAST.isObjects(ast)) return []
  return ast.propertySignatures.flatMap(({ name, type }) => {
    const at = `${path}.${String(name)}`
    const isMissing = SchemaAST.isOptional(type) && !Schema.is(Schema.make(type))(null)
    return [...isMissing ? [at] : [], ...notNull(type, at, seen)]
  })
}

it("an optional member of the venue's responses and frames may be null, too", () => {
  const schemas = [
    ...Object.values(infoOperations).map(({ name, response }) => [name, response.ast] as const),
    ...table.map(({ item, name }) => [`subscription ${name}`, item.ast] as const)
  ]
  assert.deepStrictEqual(schemas.flatMap(([name, ast]) => notNull(SchemaAST.toEncoded(ast), name, new Set())), [])
})

for (const [route, operations, answers] of tables) {
  for (const [name, { example, request, response }] of Object.entries(operations)) {
    describe(`${route} ${name}`, () => {
      const comesBack = Effect.fnUntraced(function*(schema: typeof request, wire: unknown) {
        const value = yield* Schema.decodeUnknownEffect(schema)(wire)
        assert.deepStrictEqual(yield* Schema.encodeUnknownEffect(schema)(value), wire)
      })

      it.effect("reads its example, and writes it again", () => comesBack(request, example))

      it.effect.prop(
        "writes any request so that it is read as it was",
        { value: Schema.toType(request) },
        ({ value }) =>
          Effect.gen(function*() {
            const text = Json.stringify(yield* Schema.encodeUnknownEffect(request)(value))
            const read = yield* Schema.decodeUnknownEffect(request)(yield* Effect.fromResult(Json.parse(text)))
            // what a request leaves out is written in full
            assert.deepStrictEqual<unknown>(read, typeof value === "object" ? { ...read as object, ...value } : value)
          })
      )

      for (const text of answers[name]?.texts ?? assert.fail(`${name} has no answer`)) {
        it.effect(`reads ${text.slice(0, 60)} without loss`, () =>
          Effect.gen(function*() {
            const wire = yield* Effect.fromResult(Json.parse(text))
            yield* comesBack(response, wire)
            // every object may have members that nobody knows yet
            if (text.startsWith("{") && name !== "allMids") {
              yield* comesBack(response, { ...wire as object, later: [1] })
            }
          }))
      }
    })
  }
}
