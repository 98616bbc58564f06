/** What an operation's declaration says of sharing the answers to one request. */
import type { Keeping, Sharing } from "@trigate/domain/Operation"
import type { Freshness } from "./Freshness.ts"

/** The rules of one request, as a query of `SharedReads` takes them. */
export interface Rules<A> {
  readonly keeping?: (now: number, freshness: Freshness) => Keeping | undefined
  readonly accepts?: (answer: A) => boolean
}

const none: Rules<unknown> = {}

/** The rules of a request; `textOf` gives the part of an answer that the declaration judges. */
export const of = <Request, A>(
  operation: Sharing<Request>,
  request: Request,
  textOf: (answer: A) => string
): Rules<A> => {
  // most reads keep nothing, and are asked for the most
  if (operation.keeping === undefined && operation.keepingWhenAsked === undefined) return none
  return {
    keeping: (now, freshness) =>
      (freshness === "block" ? operation.keepingWhenAsked?.(request, now) : undefined) ??
        operation.keeping?.(request, now),
    accepts: (answer) => operation.keepable?.(request, textOf(answer)) ?? true
  }
}
