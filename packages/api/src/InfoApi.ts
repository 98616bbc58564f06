/** `POST /info`: queries of the trading chain. */
import { servedFailures } from "@trigate/domain/errors/GatewayError"
import { infoOperations, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import type { QueryOperation } from "@trigate/domain/info/InfoOperations"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

const typed: ReadonlyArray<QueryOperation> = Object.values(infoOperations)

/** The errors of a query of the trading chain. */
export const infoErrors = [...infoOperations.candleSnapshot.failures, ...servedFailures] as const

/** Returns the schema of a typed query's body. */
const body = ({ name, request, summary }: QueryOperation) => {
  const { ast } = Schema.toEncoded(request)
  const members = SchemaAST.isObjects(ast) ? ast.propertySignatures : []
  const fields = Object.fromEntries(members.map((member) => [String(member.name), Schema.make(member.type)]))
  return Schema.Struct({ type: Schema.Literal(name), ...fields }).annotate({ description: summary })
}

/** The body of a query. Its member `type` selects the schema. */
export const InfoRequest = Schema.Union([
  ...typed.map(body),
  passthroughQuery.request.annotate({ description: "A query of another type, with any members" })
]).annotate({
  identifier: "InfoRequest",
  examples: typed.map(({ example, name }) => ({ type: name, ...Predicate.isObject(example) ? example : {} }))
})

export class InfoApi extends HttpApiGroup.make("info").add(
  HttpApiEndpoint.post("query", Paths.info, {
    disableCodecs: true,
    payload: InfoRequest,
    success: [...typed.map(({ response }) => Schema.toEncoded(response)), passthroughQuery.response],
    error: infoErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Query the trading chain",
    description:
      "Served by the official API; for `spotMeta`, a node is the fallback. The upstream's response is relayed unchanged, with one " +
      "exception: for an unknown coin of `candleSnapshot`, the upstream's HTTP 500 `null` becomes UnknownAsset. " +
      "If the type of a query is not in this schema, the other members are not validated. A refusal also has `code` " +
      "(the HTTP status) and `msg` (the detail), as the venue's SDKs read them."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Info",
  description:
    "Queries of the trading chain. Typed queries are validated; queries of any other type are relayed unchanged"
})) {}
