/** How each family of token-chain servers wraps an answer. */
import * as JsonText from "@trigate/domain/JsonText"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import type { TokenAnswer } from "./TokenServer.ts"

const upstream = "token-chain"

/** Members that the C++ family adds to every body; the Python family adds none to the body of a REST call. */
const extra = ({ dialect }: TokenAnswer, now: number): object =>
  dialect === "cpp" ? { "@extra": `${Math.floor(now / 1_000)}.000:0:0.004` } : {}

const wrap = (answer: TokenAnswer, now: number, members: object): UpstreamResponse.UpstreamResponse => {
  const body = "result" in answer
    ? { ok: true, result: answer.result }
    : { ok: false, error: answer.error, code: answer.status }
  return UpstreamResponse.json(
    upstream,
    answer.status,
    JsonText.stringify({ ...body, ...extra(answer, now), ...members })
  )
}

/** The body of a REST call. */
export const rest = (answer: TokenAnswer, now: number): UpstreamResponse.UpstreamResponse => wrap(answer, now, {})

/** The body of a JSON-RPC call: the Python family adds the id, always as a string; the C++ family none. */
export const rpc = (answer: TokenAnswer, now: number, id: string): UpstreamResponse.UpstreamResponse =>
  wrap(answer, now, answer.dialect === "python" ? { id, jsonrpc: "2.0" } : {})
