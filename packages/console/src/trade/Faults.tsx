/** The switches for faults of the sandbox's venue. */
import { signal } from "@preact/signals"
import * as Sandbox from "@trigate/client/Sandbox"
import { longestLatency, none, type SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import * as Struct from "effect/Struct"
import { useEffect } from "preact/hooks"
import * as Gateway from "../Gateway.ts"

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
export const change = async (call: ReturnType<typeof Sandbox.status>): Promise<void> => {
  const outcome = await Gateway.runOnPaper(call)
  failure.value = "failure" in outcome ? outcome.failure : undefined
  if ("value" in outcome) current.value = outcome.value.faults
}

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
        onChange={({ currentTarget }) => void change(Sandbox.setFaults({ [name]: Number(currentTarget.value) }))}
      />
    </label>
  )
}

/** The card with the switches for faults of the sandbox's venue. */
export const Faults = () => {
  useEffect(() => void change(Sandbox.status()), [])
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
          <button type="button" class="plain" disabled={!isAny} onClick={() => void change(Sandbox.setFaults(none))}>
            All off
          </button>
        </form>
      )}
    </details>
  )
}
