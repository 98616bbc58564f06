/** How each kind of answer is kept: in the form in which it goes out again, so that giving it costs no encoding. */
import { isRateLimit } from "@trigate/domain/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import type { Codec, Content } from "./CachedResponse.ts"

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** The content as text, for the rule that says whether it may be kept. */
export const textOf = ({ body }: Content): string => typeof body === "string" ? body : decoder.decode(body)

const asBytes = (body: Content["body"]): Uint8Array => typeof body === "string" ? Utf8.encode(body) : body

const copyOf = (body: Uint8Array): Uint8Array => new Uint8Array(body)

/** Plain answers: those of status 200, with the label of who gave it, the content type and the bytes as they came. */
export const relayed: Codec<UpstreamResponse.UpstreamResponse> = {
  keep: ({ body, contentType, status, upstream }) =>
    status === 200
      // a small answer may be a view of a large receive buffer, which would be kept with it
      ? { head: `${upstream} ${contentType}`, body: body.byteLength === body.buffer.byteLength ? body : copyOf(body) }
      : undefined,
  of: ({ body, head }, age) => {
    const end = head.indexOf(" ")
    return UpstreamResponse.make({
      upstream: head.slice(0, end),
      status: 200,
      contentType: head.slice(end + 1),
      body: asBytes(body),
      age
    })
  },
  isFault: ({ status }) => status >= 500 || status === 429
}

const isFaultCode = (code: number): boolean => code === -32603 || isRateLimit(code) || code >= 500

/** JSON-RPC results. */
export const rpc: Codec<RpcAnswer> = {
  keep: (answer) => answer._tag === "Result" ? { head: "", body: answer.result } : undefined,
  of: (content, age) => ({ _tag: "Result", result: textOf(content), age }),
  isFault: (answer) => answer._tag === "Error" && isFaultCode(answer.code)
}
