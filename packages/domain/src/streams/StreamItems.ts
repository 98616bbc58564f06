/** Decodes the frames of a subscription to the items of a typed stream. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import { MalformedFrame } from "./StreamError.ts"
import { valueAt } from "./Subscription.ts"
import type { Subscription } from "./Subscription.ts"

/** Maximum number of characters that an error quotes from a frame, and from the frame's decoding error. */
const mostQuoted = 2000

/**
 * Makes the decoder for the items in a subscription's frames. The decoder fails with `MalformedFrame` for a frame that
 * does not decode.
 */
export const reader = (declaration: Subscription) => {
  const decode = Schema.decodeUnknownResult(
    declaration.isList === true ? Schema.Array(declaration.item) : Schema.Tuple([declaration.item])
  )
  return (text: string): Result.Result<ReadonlyArray<unknown>, MalformedFrame> => {
    const data = valueAt(Result.getOrUndefined(Json.parse(text)), "data")
    return Result.mapError(
      decode(declaration.isList === true ? data : [data]),
      (error) =>
        new MalformedFrame({
          message: `The venue sent a frame of ${declaration.name} that does not decode: ${error.message}`
            .slice(0, mostQuoted),
          frame: text.slice(0, mostQuoted)
        })
    )
  }
}
