/** What an operation's declaration says of sharing the answers to one request. */
import type { CachePolicy, Sharing } from "@trigate/domain/Operation"
import type { Freshness } from "./Freshness.ts"

/** The rules of one request, as a query of `ResponseCache` takes them. */
export interface Rules<A> {
  readonly cachePolicy?: (now: number, freshness: Freshness) => CachePolicy | undefined
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
  if (operation.cachePolicy === undefined && operation.cachePolicyOnRequest === undefined) return none
  return {
    cachePolicy: (now, freshness) =>
      (freshness === "block" ? operation.cachePolicyOnRequest?.(request, now) : undefined) ??
        operation.cachePolicy?.(request, now),
    accepts: (answer) => operation.isCacheable?.(request, textOf(answer)) ?? true
  }
}
