/** What is told of the journal in `/metrics`. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

const entries = Metric.gauge("trigate_journal_entries", {
  description: "Signed actions without an answer: in flight in this process, and of unknown outcome in the journal"
})
const away = Metric.gauge("trigate_journal_away", {
  description: "1 while the journal cannot be written and signed actions are refused, else 0"
})

/** Sets the number of entries by state; a state that is not given stays as it was. */
export const report = Effect.fnUntraced(function*(counts: { readonly inFlight?: number; readonly unknown?: number }) {
  for (const [state, count] of Object.entries(counts)) {
    yield* Metric.update(Metric.withAttributes(entries, { state }), count)
  }
})

/** Says whether the journal can be written. */
export const setAway = (isAway: boolean): Effect.Effect<void> => Metric.update(away, isAway ? 1 : 0)
