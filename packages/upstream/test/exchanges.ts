/** Exchanges that end as told, through the health of their addresses. */
import { OutlierDetection } from "@trigate/upstream/OutlierDetection"
import type { Sign } from "@trigate/upstream/OutlierDetection"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"

/** Some addresses of a layer 2. */
export const targets = (count: number): Arr.NonEmptyReadonlyArray<Upstream.Target> => {
  const made = Upstream.targets(
    Upstream.make("layer2", Arr.makeBy(count, (index) => `http://node-${index}/SECRET-KEY`)),
    ""
  )
  return Arr.isReadonlyArrayNonEmpty(made) ? made : targets(1)
}

const signOf = (exit: Exit.Exit<Sign, Sign>): Sign => {
  if (exit._tag === "Success") return exit.value
  const [reason] = exit.cause.reasons
  return reason?._tag === "Fail" ? reason.error : "neutral"
}

/** One exchange that ends with a sign; counts the exchanges that were made. */
export const exchanges = Effect.gen(function*() {
  const health = yield* OutlierDetection
  const made = { count: 0 }
  const run = (target: Upstream.Target, sign: Sign, hold: Effect.Effect<void> = Effect.void) =>
    health.guard(
      target,
      Effect.suspend(() => {
        made.count += 1
        return Effect.andThen(hold, sign === "faulty" ? Effect.fail(sign) : Effect.succeed(sign))
      }),
      signOf
    )
  const faults = (target: Upstream.Target, count: number) =>
    Effect.repeat(Effect.flip(run(target, "faulty")), { times: count - 1 })
  /** Opens the circuit again by a probe that fails. */
  const failProbe = (target: Upstream.Target) => Effect.flip(run(target, "faulty"))
  return { health, made, run, faults, failProbe }
})
