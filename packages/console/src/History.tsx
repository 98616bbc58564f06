/** The traffic of the last hour, from the samples that the gateway itself takes. */
import { signal } from "@preact/signals"
import type { HistorySample } from "@trigate/api/AdminApi"
import { sampleSeconds } from "@trigate/api/AdminApi"
import * as Admin from "@trigate/client/Admin"
import { useEffect } from "preact/hooks"
import type { CallResult } from "./Gateway.ts"
import * as Gateway from "./Gateway.ts"
import * as Live from "./Live.ts"
import { Spark } from "./Spark.tsx"
import * as Words from "./Words.ts"

const found = signal<CallResult<ReadonlyArray<HistorySample>> | undefined>(undefined)

type Step = readonly [from: HistorySample, to: HistorySample]

/**
 * Returns the growth of a total per second. If the total is smaller than before, a restart of the gateway has reset it.
 */
const rate = (name: "requests" | "failed" | "deliveries") => ([from, to]: Step): number =>
  Math.max(0, to[name] - from[name]) / Math.max(1, (to.time - from.time) / 1000)

const cachedShare = ([from, to]: Step): number => {
  const cached = Math.max(0, to.cached - from.cached)
  const all = cached + Math.max(0, to.attempts - from.attempts)
  return all === 0 ? 0 : cached / all
}

const perSecond = (value: number): string => `${value.toFixed(1)} /s`

interface Line {
  readonly title: string
  readonly value: (step: Step) => number
  readonly format: (value: number) => string
  readonly isShown?: (last: HistorySample) => boolean
}

const lines: ReadonlyArray<Line> = [
  { title: "Requests", value: rate("requests"), format: perSecond },
  { title: "Failed requests", value: rate("failed"), format: perSecond },
  { title: "Reads from cache", value: cachedShare, format: Words.percent },
  {
    title: "Weight left",
    value: ([, { weightLeft = 0 }]) => weightLeft,
    format: Words.count,
    isShown: ({ weightLeft }) => weightLeft !== undefined
  },
  { title: "WebSockets", value: ([, { sockets }]) => sockets, format: Words.count },
  { title: "Deliveries of streams", value: rate("deliveries"), format: perSecond }
]

const Lines = ({ samples }: { readonly samples: ReadonlyArray<HistorySample> }) => {
  const steps = samples.slice(1).flatMap((to, at): ReadonlyArray<Step> => {
    const from = samples[at]
    return from === undefined ? [] : [[from, to]]
  })
  const last = samples.at(-1)
  if (last === undefined || steps.length === 0) {
    return <p class="muted">The first values appear {sampleSeconds} seconds after the start of the gateway.</p>
  }
  const [first] = samples
  return (
    <>
      <dl class="tiles hour">
        {lines.filter(({ isShown }) => isShown?.(last) ?? true).map(({ format, title, value }) => {
          const values = steps.map(value)
          const top = Math.max(...values)
          return (
            <div key={title}>
              <dt>{title}</dt>
              <dd>
                <strong>{format(values.at(-1) ?? 0)}</strong> <span class="muted">at most {format(top)}</span>
                <Spark label={`${title} in the last hour, at most ${format(top)}`} top={top} values={values} />
              </dd>
            </div>
          )
        })}
      </dl>
      <p class="muted">
        {Words.clock(first?.time ?? last.time).slice(0, 5)} to {Words.clock(last.time).slice(0, 8)} UTC, a sample every
        {" "}
        {sampleSeconds} seconds, of this gateway only.
      </p>
    </>
  )
}

/** The card with the traffic of the last hour. */
export const History = () => {
  useEffect(() =>
    Live.whileVisible(async () => {
      found.value = await Gateway.run(Admin.history())
    }, sampleSeconds * 1000), [])
  const samples = found.value
  return (
    <section class="card" aria-labelledby="hour-title">
      <h2 id="hour-title">The last hour</h2>
      {samples === undefined
        ? <p class="muted">Reading …</p>
        : "failure" in samples
        ? <p class="bad" role="alert">{samples.failure}</p>
        : <Lines samples={samples.value} />}
    </section>
  )
}
