/** What a sandbox's EVM node says to a call: a result, or an error in the words of common nodes. */
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** An error object of a node. */
export interface Refusal {
  readonly code: number
  readonly message: string
}

/** A result to be written as JSON, or a refusal. */
export type Reply = Result.Result<unknown, Refusal>

/** Params of another shape than the method's. */
export const invalidParams: Refusal = { code: -32602, message: "invalid params" }

/** What a node says that would not do something. */
export const refused = (message: string): Refusal => ({ code: -32000, message })

/** What the sandbox says that would have to run a contract. */
export const noCode = refused("the sandbox runs no contract code")

/** Answers from a view of the chain and params that are raw JSON text. */
export type Method<View> = (view: View, params: string) => Reply

/** Reads the params of a method, then answers from them. */
export const method = <View, Request>(
  schema: Schema.ConstraintCodec<Request, unknown>,
  answer: (view: View, request: Request) => Reply
): Method<View> => {
  const decode = Schema.decodeUnknownOption(schema)
  return (view, params) =>
    Option.match(Option.flatMap(Result.getSuccess(JsonText.parse(params)), decode), {
      onNone: () => Result.fail(invalidParams),
      onSome: (request) => answer(view, request)
    })
}

/** The reply as the gateway reads a node's answers. */
export const answerOf = (reply: Reply): RpcAnswer =>
  Result.match(reply, {
    onFailure: (error): RpcAnswer => ({ _tag: "Error", ...error, error: JsonText.stringify(error) }),
    onSuccess: (value): RpcAnswer => ({ _tag: "Result", result: JsonText.stringify(value) })
  })
