/** Each operation of the reference, asked with the example that stands there. */
import { assert, describe, it } from "@effect/vitest"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Parameter = Schema.Struct({ name: Schema.String, in: Schema.String, schema: Schema.Unknown })

const Operation = Schema.Struct({
  parameters: Schema.optionalKey(Schema.Array(Parameter)),
  requestBody: Schema.optionalKey(Schema.Struct({
    content: Schema.Struct({ "application/json": Schema.Struct({ schema: Schema.Unknown }) })
  }))
})

const Methods = Schema.Struct({ get: Schema.optionalKey(Operation), post: Schema.optionalKey(Operation) })

const decodeDocument = Schema.decodeUnknownEffect(Schema.Struct({
  paths: Schema.Record(Schema.String, Methods),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, Schema.Unknown) })
}))

const Exampled = Schema.Struct({ examples: Schema.NonEmptyArray(Schema.Unknown) })
const Referring = Schema.Struct({ $ref: Schema.String })

const decodeExampled = Schema.decodeUnknownOption(Exampled)
const decodeReferring = Schema.decodeUnknownOption(Referring)

type Document = Effect.Success<ReturnType<typeof decodeDocument>>

/** The examples of a schema, or of the component that it names. */
const examplesOf = ({ components }: Document, schema: unknown): ReadonlyArray<unknown> => {
  const exampled = decodeExampled(schema)
  if (exampled._tag === "Some") return exampled.value.examples
  const referring = decodeReferring(schema)
  if (referring._tag === "None") return []
  const component = decodeExampled(components.schemas[referring.value.$ref.replace("#/components/schemas/", "")])
  return component._tag === "Some" ? component.value.examples : []
}

/** Whether an answer is one of the operation itself: no problem, no JSON-RPC error, no failed envelope. */
const succeeded = ({ status, text }: { readonly status: number; readonly text: string }): boolean =>
  status === 200 && !/"error":|"ok":false|"status":"err"/u.test(text)

/** Whether an answer that does not end begins as a stream of events. */
const opens = (target: string) =>
  Effect.promise(async (signal) => {
    const response = await fetch(target, { signal })
    await response.body?.cancel()
    return response.status === 200 && response.headers.get("content-type") === "text/event-stream"
  })

describe("the examples of the reference", () => {
  it.live("are answered by the sandbox as they stand, on every route", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const document = yield* decodeDocument((yield* get(`${url}/openapi.json`)).json)
      const outcomes: Array<string> = []
      for (const [path, methods] of Object.entries(document.paths)) {
        for (const [method, operation] of Object.entries(methods)) {
          const value = (schema: unknown) => String(examplesOf(document, schema)[0])
          const { parameters = [], requestBody } = operation
          const filled = parameters.filter((each) => each.in === "path")
            .reduce((filled, { name, schema }) => filled.replace(`{${name}}`, value(schema)), path)
          const query = parameters.filter((each) => each.in === "query")
            .map(({ name, schema }) => `${name}=${encodeURIComponent(value(schema))}`).join("&")
          const target = `${url}${filled}${query === "" ? "" : `?${query}`}`
          const bodies = requestBody === undefined
            ? [{}]
            : examplesOf(document, requestBody.content["application/json"].schema)
          if (method === "get") {
            const isOpen = path.includes("/streams") && (yield* opens(target))
            outcomes.push(`GET ${path} ${isOpen || succeeded(yield* get(target))}`)
          }
          for (const body of method === "post" ? bodies : []) {
            const answer = yield* post(target, JSON.stringify(body))
            outcomes.push(`POST ${path} ${answer.status === 501 ? "501" : succeeded(answer)}`)
          }
        }
      }
      assert.deepStrictEqual(outcomes.filter((outcome) => !outcome.endsWith(" true")), [
        // nothing went through this gateway under these ids
        "GET /actions/{id} false",
        "GET /actions false",
        // WebSockets, which a plain request does not open
        "GET /evm false",
        "GET /l2 false",
        "GET /ws false",
        "POST /{endpointKey}/exchange 501",
        "POST /{endpointKey}/exchange 501",
        "POST /{endpointKey}/exchange 501",
        "POST /{endpointKey}/exchange 501",
        "POST /{endpointKey}/exchange 501",
        "GET /{endpointKey}/actions/{id} false",
        "GET /{endpointKey}/actions false",
        "POST /{endpointKey}/info 501",
        "GET /{endpointKey}/evm false",
        "GET /{endpointKey}/l2 false",
        "GET /{endpointKey}/ws false",
        "GET /{endpointKey} false",
        // this gateway asks nobody for a key
        "POST /admin/keys false",
        "POST /admin/keys/{name}/rotate false",
        "POST /admin/keys/{name}/revoke false"
      ])
      assert.deepStrictEqual(
        new Set(outcomes.map((outcome) => outcome.split(" ")[1])),
        new Set(Object.keys(document.paths))
      )
    }))
})
