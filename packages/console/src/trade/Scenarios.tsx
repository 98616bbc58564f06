/**
 * The control of a sandbox: the bar of scenarios, the progress of the one that runs, and the switches for faults of the
 * venue.
 */
import { signal } from "@preact/signals"
import * as Sandbox from "@trigate/client/Sandbox"
import { longestLatency, none, type SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import { useEffect } from "preact/hooks"
import * as Gateway from "../Gateway.ts"
import * as Table from "../Table.tsx"

/** The guides of the scenarios, by the scenario's name. */
const guides = {
  "100 bots on one address": { title: "How reads are cached", file: "reliability.md#caching" },
  "Lose the next reply": { title: "When the outcome is unknown", file: "guides/unknown-outcomes.md" },
  "A mistake in a signature": { title: "When a signature is refused", file: "guides/signature-refused.md" },
  "Kill the venue's socket": {
    title: "When the connection is lost",
    file: "streams.md#when-the-connection-to-the-venue-is-lost"
  },
  "Jump an hour": { title: "Control of the sandbox", file: "sandbox.md#control" }
} as const

/** The name of a scenario. */
export type Scenario = keyof typeof guides

/** A value and its maximum, as a bar. */
interface Bar {
  readonly name: string
  readonly value: number
  readonly most: number
}

/** The progress of a scenario. */
export interface Progress {
  readonly name: Scenario
  readonly steps: ReadonlyArray<string>
  readonly bars: ReadonlyArray<Bar>
  /** The figure at the end, and its meaning. */
  readonly figure?: { readonly text: string; readonly meaning: string }
  readonly failure?: string
}

/** The running scenario, or the last one that ran. */
const progress = signal<Progress | undefined>(undefined)

const current = signal<SandboxFaults | undefined>(undefined)
const failure = signal<string | undefined>(undefined)

const names: { readonly [Name in keyof SandboxFaults]: string } = {
  latency: "Latency, milliseconds",
  lostReplies: "Actions whose reply is lost",
  lostRequests: "Actions lost before the venue",
  rateLimited: "Requests refused with 429",
  rejectedLegs: "Orders rejected",
  droppedSockets: "WebSockets cut each second"
}

/** Changes the faults, and shows those in effect. */
const changeFaults = async (call: ReturnType<typeof Sandbox.status>): Promise<void> => {
  const outcome = await Gateway.runOnPaper(call)
  failure.value = "failure" in outcome ? outcome.failure : undefined
  if ("value" in outcome) current.value = outcome.value.faults
}

/** Whether a scenario is running. Only one runs at a time. */
const isRunning = signal(false)

const change = (changed: Partial<Progress>): void => {
  if (progress.value !== undefined) progress.value = { ...progress.value, ...changed }
}

/** Runs a scenario, whose code is loaded first. */
const play = async (name: Scenario): Promise<void> => {
  if (isRunning.value) return
  isRunning.value = true
  progress.value = { name, steps: [], bars: [] }
  const story = Effect.flatMap(Effect.promise(() => import("./Stories.ts")), ({ stories }) =>
    stories[name]({
      change,
      say: (step) => change({ steps: [...progress.value?.steps ?? [], step] }),
      end: (text, meaning) => change({ figure: { text, meaning } }),
      setFaults: (faults) => changeFaults(Sandbox.setFaults(faults))
    }))
  const outcome = await Gateway.runOnPaper(story)
  if ("failure" in outcome) change({ failure: outcome.failure })
  isRunning.value = false
}

const documents = "https://github.com/trigate/trigate/blob/main/docs/"

const BarRow = ({ bar: { most, name, value } }: { readonly bar: Bar }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <meter min={0} max={most} value={value} aria-label={name} /> <strong>{Table.count(value)}</strong>
    </dd>
  </div>
)

const Progress = () => {
  const now = progress.value
  if (now === undefined) return null
  const { bars, failure, figure, name, steps } = now
  const guide = guides[name]
  return (
    <div class="story" role="region" aria-label={name} aria-live="polite">
      <div>
        <ol>{steps.map((step) => <li key={step}>{step}</li>)}</ol>
        {bars.length === 0 ? null : <dl class="bars">{bars.map((bar, at) => <BarRow key={at} bar={bar} />)}</dl>}
      </div>
      <div class="end">
        {failure !== undefined
          ? <p class="bad" role="alert">{failure}</p>
          : figure === undefined
          ? <p class="muted">Running …</p>
          : (
            <>
              <p class="number">{figure.text}</p>
              <p>{figure.meaning}</p>
            </>
          )}
        <p class="muted">
          Guide: <a href={documents + guide.file} rel="noreferrer">{guide.title}</a>
        </p>
      </div>
      <button
        type="button"
        class="plain"
        aria-label="Close the scenario"
        disabled={isRunning.value}
        onClick={() => (progress.value = undefined)}
      >
        ✕
      </button>
    </div>
  )
}

/** The card with a button for each scenario. */
export const Scenarios = () => (
  <section class="card stories" aria-label="Scenarios">
    <div class="row">
      <h2>Scenarios</h2>
      {Struct.keys(guides).map((name) => (
        <button
          key={name}
          type="button"
          class="plain"
          aria-pressed={progress.value?.name === name}
          disabled={isRunning.value}
          onClick={() => void play(name)}
        >
          {name}
        </button>
      ))}
    </div>
    <Progress />
  </section>
)

const Slider = ({ name, value }: { readonly name: keyof SandboxFaults; readonly value: number }) => {
  const isShare = name !== "latency"
  const most = isShare ? 1 : Math.min(2000, longestLatency)
  return (
    <label>
      {names[name]}: {isShare ? `${Math.round(value * 100)} %` : `${value} ms`}
      <input
        type="range"
        min={0}
        max={most}
        step={most / 20}
        value={value}
        onChange={({ currentTarget }) => void changeFaults(Sandbox.setFaults({ [name]: Number(currentTarget.value) }))}
      />
    </label>
  )
}

/** The card with the switches for faults of the sandbox's venue. */
export const Faults = () => {
  useEffect(() => void changeFaults(Sandbox.status()), [])
  const faults = current.value
  const isAny = faults !== undefined && Object.values(faults).some((value) => value > 0)
  return (
    <details class="card">
      <summary>
        Faults of the venue: {faults === undefined ? "…" : isAny ? <strong class="bad">on</strong> : "off"}
      </summary>
      {failure.value === undefined ? null : <p class="bad" role="alert">{failure.value}</p>}
      {faults === undefined ? null : (
        <form class="grid" onSubmit={(event) => event.preventDefault()}>
          {Struct.keys(names).map((name) => <Slider key={name} name={name} value={faults[name]} />)}
          <button
            type="button"
            class="plain"
            disabled={!isAny}
            onClick={() => void changeFaults(Sandbox.setFaults(none))}
          >
            All off
          </button>
        </form>
      )}
    </details>
  )
}
