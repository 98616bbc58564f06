/** The latest requests of callers, without their paths and bodies. They are recorded while the panel is open. */
import { useSignal } from "@preact/signals"
import type { NotedRequest } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import { useEffect } from "preact/hooks"
import * as Gateway from "./Gateway.ts"
import * as Live from "./Live.ts"
import * as Table from "./Table.tsx"

/** Maximum number of stored requests. */
const held = 500

/** Maximum number of shown requests. */
const shown = 100

const row = (
  { caller = "–", error, id, key, milliseconds, operations, route, sequence, status, time }: NotedRequest
) => ({
  key: sequence,
  cells: [
    <span key="time" title={id}>{Table.clock(time)}</span>,
    <span key="caller" title={key === undefined ? undefined : `key ${key}`}>{caller}</span>,
    route,
    `${[...new Set(operations)].slice(0, 3).join(", ")}${operations.length > 3 ? " …" : ""}` || "–",
    <span key="status" class={status >= 400 ? "bad" : ""}>{status}</span>,
    `${milliseconds} ms`,
    error === undefined ? "–" : <span key="error" class="bad">{error}</span>
  ]
})

/** The console's panel of callers' latest requests. */
export const Requests = () => {
  const requests = useSignal<ReadonlyArray<NotedRequest>>([])
  const failure = useSignal<string | undefined>(undefined)
  const isPaused = useSignal(false)
  useEffect(() =>
    Live.whileVisible(async () => {
      if (isPaused.value) return
      const outcome = await Gateway.run(Admin.requests(requests.value.at(-1)?.sequence))
      failure.value = "failure" in outcome ? outcome.failure : undefined
      if ("value" in outcome) requests.value = [...requests.value, ...outcome.value].slice(-held)
    }), [])
  const { caller = "", failed } = Gateway.place.value.params
  const wanted = requests.value.filter((request) =>
    (request.caller ?? "").includes(caller) &&
    (failed !== "yes" || request.status >= 400 || request.error !== undefined)
  )
  return (
    <section class="card" aria-labelledby="requests-title">
      <h2 id="requests-title">Requests as they end</h2>
      <p class="muted">
        Entries of the access log, without bodies and paths, and with only the prefix of a key. This gateway records
        them while a page like this one is open. Requests of other replicas are not included.
      </p>
      <form class="row" onSubmit={(event) => Gateway.go("requests", Table.formTexts(event))}>
        <label>
          Caller <input name="caller" defaultValue={caller} key={caller} size={24} spellcheck={false} />
        </label>
        <label class="check">
          <input
            type="checkbox"
            name="failed"
            value="yes"
            checked={failed === "yes"}
            onChange={(event) => event.currentTarget.form?.requestSubmit()}
          />{" "}
          Only failed requests
        </label>
        <button type="submit">Show</button>
        <button
          type="button"
          class="plain"
          aria-pressed={isPaused.value}
          onClick={() => {
            isPaused.value = !isPaused.value
          }}
        >
          {isPaused.value ? "Go on" : "Pause"}
        </button>
      </form>
      {failure.value === undefined ? null : <p class="bad" role="alert">{failure.value}</p>}
      {wanted.length === 0
        ? <p class="muted">{isPaused.value ? "Paused." : "No requests yet: each one appears here when it ends."}</p>
        : (
          <Table.Grid
            label="Requests"
            text={["Caller", "Route", "Operations", "Error"]}
            columns={["Time", "Caller", "Route", "Operations", "Status", "Took", "Error"]}
            rows={wanted.slice(-shown).toReversed().map(row)}
          />
        )}
    </section>
  )
}
