/** JSON-RPC 2.0 envelopes as the documents show them; the gateway itself reads and writes them as text. */
import { Params } from "@trigate/domain/EvmMethods"
import { longestBatch } from "@trigate/domain/JsonRpc"
import type { Operation } from "@trigate/domain/Operation"
import * as Schema from "effect/Schema"

const Id = Schema.Union([Schema.String, Schema.Finite, Schema.Null])

const callOf = (operation: Operation) =>
  Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.optionalKey(Id),
    method: Schema.Literal(operation.name),
    params: Schema.optionalKey(Schema.toEncoded(operation.request))
  }).annotate({ description: operation.summary })

/** The calls that a route takes, one branch for each method with a schema and one for all that are relayed unread. */
export const rpcCall = (operations: ReadonlyArray<Operation>) => {
  const names = operations.filter(({ verbatim }) => verbatim === true).map(({ name }) => name)
  const relayed = Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.optionalKey(Id),
    method: Schema.Literals(names),
    params: Schema.optionalKey(Params)
  }).annotate({ description: "A read that is relayed as it is" })
  return Schema.Union([...operations.filter(({ verbatim }) => verbatim !== true).map(callOf), relayed])
}

/** An error of a call: a JSON-RPC code, and the typed error in `data` where it is one of ours. */
export const RpcError = Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
}).annotate({ identifier: "RpcError" })

/** The answer to one call; HTTP 200 also when it carries an error. */
export const RpcAnswer = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Id,
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(RpcError)
}).annotate({ identifier: "RpcAnswer" })

/** A call or a batch of calls. */
export const orBatch = <S extends Schema.Top>(schema: S) =>
  Schema.Union([schema, Schema.Array(schema).check(Schema.isMaxLength(longestBatch))])
