/** Typed calls of EVM nodes: encodes requests as params, and decodes results, typed errors and the nodes' own errors. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { type CommonFailure, upstreamFailures, wrapReason } from "../errors/GatewayError.ts"
import { problemType } from "../errors/Problem.ts"
import { InvalidRequest, UnsupportedMethod } from "../errors/RequestError.ts"
import { UpstreamForbidden, UpstreamRateLimited, UpstreamUnavailable } from "../errors/UpstreamError.ts"
import * as JsonRpc from "../operations/JsonRpc.ts"
import type { RpcAnswer } from "../operations/JsonRpc.ts"
import { encodeRequest, typedMethodMapper as typedMethod } from "../operations/Operation.ts"
import type { AnyCodec, MethodClass, Methods, Operation } from "../operations/Operation.ts"
import { decodeJson } from "../operations/Protocol.ts"
import type { ReadOperation } from "../operations/Protocol.ts"
import type { CheckedRead, EvmBackend } from "./EvmProtocol.ts"
import { checkBlock } from "./EvmProtocol.ts"

// "method not supported" of EIP-1474 and the standard "method not found"; nodes use either
const unsupportedCodes = new Set([-32601, -32004])

/**
 * Returns whether a node's error reports a revert. Recognizes the messages of geth and its forks, of OpenEthereum, and
 * of older nodes.
 */
const isRevert = (code: number, message: string): boolean =>
  code === 3 || code === -32015 || (code === -32000 && /\brevert/iu.test(message))

/** Matches the data of a revert, with or without the prefix `Reverted`. */
const revertData = /^(?:Reverted )?(?<data>0x(?:[0-9a-fA-F]{2})*)$/u

/**
 * Converts a node's error about a revert to the encoded form of `CallReverted`. Returns `undefined` for any other
 * error. Operations that do not declare `CallReverted` do not decode this form.
 */
const decodeRevert = (upstream: string, code: number, message: string, error: unknown): object | undefined => {
  if (!isRevert(code, message)) return undefined
  const data = JsonRpc.member(error, "data")
  const hex = Predicate.isString(data) ? revertData.exec(data)?.groups?.["data"] : undefined
  return {
    _tag: "CallReverted",
    type: problemType("CallReverted"),
    detail: `${upstream} returned error ${code}: ${message}`,
    upstream,
    code,
    ...(hex === undefined ? {} : { data: hex })
  }
}

const failureOfCode = (upstream: string, method: string, code: number, message: string): CommonFailure => {
  const detail = `${upstream} returned error ${code}: ${message}`
  if (unsupportedCodes.has(code)) return new UnsupportedMethod({ method, detail })
  if (code === -32602 || code === -32600 || code === -32700) {
    return new InvalidRequest({ errors: [{ path: ["params"], message }], detail })
  }
  if (JsonRpc.isRateLimit(code)) return new UpstreamRateLimited({ upstream, detail })
  return new UpstreamUnavailable({ upstream, attempts: 1, detail })
}

/** Makes the reader of an operation's responses. An error whose `data` contains a typed error decodes to that error. */
export const makeReader = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const decodeData = Schema.decodeUnknownOption(Schema.Union([...upstreamFailures, ...operation.failures]))
  const decodeResult = decodeJson(operation.response)
  return (
    upstream: string,
    answer: RpcAnswer
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    if (answer._tag === "Result") return decodeResult(upstream, answer.result)
    const error = answer.error.valueOrUndefined
    const data = JsonRpc.member(error, "data")
    const travelled = Option.orElse(
      decodeData(data),
      () => decodeData(decodeRevert(upstream, answer.code, answer.message, error))
    )
    if (Option.isNone(travelled) && answer.isForbidden === true) {
      const detail = `${upstream} returned error ${answer.code}: ${answer.message}`
      return Effect.fail(new UpstreamForbidden({ upstream, detail }))
    }
    return Effect.fail(Option.getOrElse(
      travelled,
      () => failureOfCode(upstream, operation.name, answer.code, answer.message)
    ))
  }
}

/** Sends a read on behalf of a service. */
export type Ask<E, R = never> = (call: Omit<CheckedRead, "surface">) => Effect.Effect<RpcAnswer, E, R>

/** Makes a read for the gateway's own calls. Unlike {@link makeMethod}, does not wrap errors in `UpstreamError`. */
export const makeRead = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, "read", Request, Response, Failures>) => {
  const write = encodeRequest(operation.request, ["params"])
  const read = makeReader<Request, Response, Failures>(operation)
  return <E, R>(label: string, ask: Ask<E, R>) =>
    Effect.fnUntraced(function*(request?: Request["Type"]) {
      const params = yield* write(request)
      return yield* read(label, yield* ask({ operation, params, request }))
    })
}

/** Makes the typed method of an operation; `label` is the upstream's label. */
export const makeMethod = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, "read", Request, Response, Failures>) => {
  const make = makeRead<Request, Response, Failures>(operation)
  return <E, R>(service: string, label: string, ask: Ask<E, R>) => {
    const read = make(label, ask)
    return Effect.fn(`${service}.${operation.name}`)((request?: Request["Type"]) =>
      Effect.mapError(read(request), wrapReason)
    )
  }
}

/** Makes a typed method for each operation of a table. Refuses unsupported blocks before anything is sent. */
export const makeMethods = <Operations extends { readonly [name: string]: ReadOperation }>(
  operations: Operations,
  service: string,
  label: string,
  { read }: Pick<EvmBackend, "read">
): Methods<Operations, CommonFailure> =>
  Struct.map(
    operations,
    typedMethod<CommonFailure>((operation) =>
      makeMethod(operation)(service, label, (call) =>
        Effect.andThen(checkBlock(operation, call.params.valueOrUndefined), read({ ...call, surface: "gateway" })))
    )
  )
