/** What one request turned out to be: filled in on its way, read by the access log and the metrics at its end. */
import type { UpstreamResponse } from "@trigate/domain/UpstreamResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Every member comes from a closed set, so that it can be a metric label; none holds anything a caller wrote. */
export interface RequestFacts {
  /** Name of the contract's endpoint (`exchange.submit`), or `other`. */
  route: string
  /** Declared operations of the request with the outcome of each: `ok`, `upstream_error`, or the tag of a typed error. */
  readonly operations: Array<{ readonly operation: string; readonly outcome: string }>
  /** Tag of the typed error that the whole request ended in. */
  error: string | undefined
  /** Seconds since the oldest answer of the request was read upstream; nothing where all were read just now. */
  age: number | undefined
}

/** Takes note of an answer's age. */
export const noteAge = (facts: RequestFacts, age: number | undefined): void => {
  if (age !== undefined) facts.age = Math.max(facts.age ?? 0, age)
}

/** Takes note of an operation whose answer goes out as it came, and of that answer's age. */
export const noteRelayed = (facts: RequestFacts, operation: string, { age, status }: UpstreamResponse): void => {
  facts.operations.push({ operation, outcome: status === 200 ? "ok" : "upstream_error" })
  noteAge(facts, age)
}

/** A fresh record of a request that has not been matched yet. */
export const make = (): RequestFacts => ({ route: "other", operations: [], error: undefined, age: undefined })

// the default of a reference is made once for the whole program: nobody may write into it
const unobserved = make()

/** The facts of the request that the fiber works on, where somebody observes it. */
export const CurrentRequestFacts = Context.Reference<RequestFacts>("@trigate/server/CurrentRequestFacts", {
  defaultValue: () => unobserved
})

/** Names the route that the effect answers, in the observer's facts or in new ones where nobody observes. */
export const named = <A, E, R>(route: string, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const facts = fiber.getRef(CurrentRequestFacts)
    if (facts === unobserved) return Effect.provideService(self, CurrentRequestFacts, { ...make(), route })
    facts.route = route
    return self
  })
