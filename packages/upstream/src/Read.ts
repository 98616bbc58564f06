/** One read: what it asks, and where. */
import type { Cost } from "@trigate/domain/Operation"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import type { AttemptResult } from "./AttemptResult.ts"
import type { Target } from "./Upstream.ts"

/** What a read asks, and how its answers are read. */
export interface Question<A, E> {
  /** A body means POST, none means GET. */
  readonly body: Uint8Array | undefined
  readonly read: (answer: UpstreamResponse.UpstreamResponse, target: Target) => AttemptResult<A, E>
}

/** A read: its operation, and where it can be asked, in order of preference. */
export interface Read {
  readonly operation: { readonly name: string; readonly class: "read"; readonly cost: Cost; readonly cheap?: true }
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
}
