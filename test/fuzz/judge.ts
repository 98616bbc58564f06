/** What is wrong with an answer. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { FuzzAnswer, Missing } from "./connection.ts"
import type { FuzzRequest, Target } from "./request.ts"

/** The endpoint keys of the upstreams as they stand in a path: nobody outside may see one. */
export const secrets = { api: "fuzz-secret-api", node: "n%40de-K9", tokens: "t0k%20en", layer2: "k7Qz" } as const

/** Their spellings: as they were sent, and decoded. */
const spellings = Object.values(secrets).flatMap((secret) => [secret, decodeURIComponent(secret)])

/** The upstream that always answers as it should. */
export const soundUpstream = "layer2"

const Problem = Schema.Struct({
  type: Schema.String,
  title: Schema.NonEmptyString,
  status: Schema.Int,
  detail: Schema.String
})
const Typed = Schema.Struct({
  _tag: Schema.String,
  status: Schema.Int,
  upstream: Schema.optionalKey(Schema.String)
})
const RpcAnswer = Schema.Union([
  Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.Unknown,
    error: Schema.Struct({ code: Schema.Int, message: Schema.String, data: Schema.optionalKey(Schema.Unknown) })
  }),
  Schema.Struct({ jsonrpc: Schema.Literal("2.0"), id: Schema.Unknown, result: Schema.Unknown })
])

const problemOf = Schema.decodeUnknownOption(Problem)
const typedOf = Schema.decodeUnknownOption(Typed)
const isRpcAnswer = Schema.is(RpcAnswer)
const parsed = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Why an upstream's failure may not show: nothing where the plan has one for it. */
const unplanned = (target: Target, error: unknown): string | undefined => {
  const { _tag, status, upstream } = Option.getOrElse(
    typedOf(error),
    () => ({ _tag: "no typed error", status: 0, upstream: undefined })
  )
  if (status !== 0 && (status < 500 || status === 501)) return undefined
  if (target === "upstreams" && upstream !== undefined && upstream !== soundUpstream) return undefined
  return `${_tag} that nothing upstream explains`
}

const ofText = ({ body }: FuzzAnswer): Option.Option<unknown> => parsed(body.toString("utf8"))

const ofProblem = (answer: FuzzAnswer, target: Target): string | undefined =>
  Option.match(Option.flatMap(ofText(answer), problemOf), {
    onNone: () => "a problem document that is none",
    onSome: ({ status }) => {
      if (status !== answer.status) return "a problem with another status than its answer"
      return status >= 500 && status !== 501 && status !== 505
        ? unplanned(target, Option.getOrUndefined(ofText(answer)))
        : undefined
    }
  })

const isRpcPath = (target: string): boolean => /\/(?:evm|l2)$/u.test(target)

const ofRpc = (value: unknown, target: Target): string | undefined => {
  if (!isRpcAnswer(value)) return "a JSON-RPC answer that is none"
  return "error" in value && value.error.data !== undefined && Option.isSome(typedOf(value.error.data))
    ? unplanned(target, value.error.data)
    : undefined
}

const ofJson = (request: FuzzRequest, answer: FuzzAnswer, target: Target): string | undefined => {
  const value = ofText(answer)
  if (Option.isNone(value)) return target === "sandbox" ? "JSON that is none" : undefined
  if (request.method !== "POST" || request.raw !== undefined || !isRpcPath(request.target)) return undefined
  const each = Array.isArray(value.value) ? value.value : [value.value]
  return each.map((one) => ofRpc(one, target)).find((complaint) => complaint !== undefined)
}

const ofContent = (request: FuzzRequest, answer: FuzzAnswer, target: Target): string | undefined => {
  const { body, headers, status } = answer
  if (body.length === 0) {
    const isEmpty = status === 204 || status === 304 || request.method === "HEAD" || status === 200
    return isEmpty ? undefined : "an empty answer"
  }
  // the bytes of a coding say nothing here
  if (headers.has("content-encoding")) return undefined
  const type = headers.get("content-type") ?? ""
  if (type === "application/problem+json") return ofProblem(answer, target)
  if (status >= 500 && status !== 501 && target === "sandbox") return `HTTP ${status} that is no problem`
  if (type.startsWith("application/json")) return ofJson(request, answer, target)
  // a page of the gateway's own, and what it loads
  if (status === 200 && request.method === "GET" && headers.has("etag")) return undefined
  if (type.startsWith("text/html")) return "HTML"
  return type.startsWith("text/plain") || target === "upstreams" ? undefined : `an answer of type ${type}`
}

/** What is wrong with an answer; nothing when it is as it should be. */
export const complaintOf = (
  request: FuzzRequest,
  answer: FuzzAnswer | Missing,
  target: Target
): string | undefined => {
  if (typeof answer === "string") {
    // bytes that are no HTTP need no answer
    return answer === "closed" && request.raw !== undefined ? undefined : `an answer that is ${answer}`
  }
  const { body, headers, status } = answer
  const isProblem = headers.get("content-type") === "application/problem+json"
  // a token-chain node refuses a cell that is no message with 500, and so does the sandbox
  if (status === 500 && body.toString().includes(`"error":"LITE_SERVER_UNKNOWN: cannot apply external message`)) {
    return undefined
  }
  // the venue's own 500 is relayed
  if (status === 500 && (isProblem || target === "sandbox")) return "HTTP 500"
  // Node's own refusal of a request without a host
  if (request.raw !== undefined && status === 400 && body.length === 0) return undefined
  const text = `${[...headers].join("\n")}\n${body.toString("utf8")}`
  if (spellings.some((secret) => text.includes(secret))) return "an endpoint key"
  if (/node_modules|packages\/[a-z]+\/src|\.ts:\d/u.test(text) && headers.get("content-type") !== "text/html") {
    return "a stack"
  }
  if (headers.has("x-injected")) return "a header of the caller's making"
  // what is refused before it is a request has no id and no other header of the gateway's
  if (headers.has("x-request-id") && headers.get("x-content-type-options") !== "nosniff") {
    return "an answer without nosniff"
  }
  return ofContent(request, answer, target)
}
