/** Bounded decompression of responses: some servers compress although nobody asked them to. */
import * as Effect from "effect/Effect"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { TransportError } from "../HttpTransport.ts"
import type { TransportResponse } from "../HttpTransport.ts"

type Decoder = (
  input: Uint8Array,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, output: Uint8Array) => void
) => void

const decoders: { readonly [encoding: string]: Decoder } = {
  gzip: gunzip,
  "x-gzip": gunzip,
  deflate: inflate,
  br: brotliDecompress
}

/** The response with its decompressed body, at most `limit` bytes long. */
export const decompress = (
  answer: TransportResponse,
  limit: number
): Effect.Effect<TransportResponse, TransportError> => {
  const encoding = answer.headers["content-encoding"]
  if (encoding === undefined || encoding === "identity" || answer.body.length === 0) return Effect.succeed(answer)
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (decoder === undefined) {
    return Effect.fail(new TransportError({ sent: "maybe", reason: "Encoding", detail: "Unknown content encoding" }))
  }
  return Effect.callback((resume) => {
    decoder(answer.body, { maxOutputLength: limit }, (error, body) => {
      resume(
        error === null
          ? Effect.succeed({ ...answer, body })
          : Effect.fail(
            "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"
              ? new TransportError({
                sent: "maybe",
                reason: "TooLarge",
                detail: `The answer is larger than ${limit} bytes`
              })
              : new TransportError({ sent: "maybe", reason: "Encoding", detail: "The answer does not decompress" })
          )
      )
    })
  })
}
