/** Repeats a call to the gateway every two seconds while a panel is shown. */
import { useSignal } from "@preact/signals"
import type { Connection } from "@trigate/client/Connection"
import type * as Effect from "effect/Effect"
import { useEffect } from "preact/hooks"
import type { CallResult } from "./Gateway.ts"
import * as Gateway from "./Gateway.ts"
import * as Live from "./Live.ts"

/**
 * Returns the latest response to a call, and a function that repeats the call immediately. The response is `undefined`
 * until the first one arrives.
 */
export const usePolled = <A, E>(
  call: () => Effect.Effect<A, E, Connection>
): readonly [last: CallResult<A> | undefined, ask: () => Promise<void>] => {
  const last = useSignal<CallResult<A> | undefined>(undefined)
  const ask = async (): Promise<void> => {
    last.value = await Gateway.run(call())
  }
  useEffect(() => Live.whileVisible(ask), [])
  return [last.value, ask]
}
