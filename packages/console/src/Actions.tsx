/** The action log: signed actions of unknown outcome, their age, and how to resolve them. */
import { useSignal } from "@preact/signals"
import type { ActionResolution, UnansweredAction } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import * as Gateway from "./Gateway.ts"
import { readiness, usePolled } from "./Live.ts"
import * as Words from "./Table.tsx"
import { Grid } from "./Table.tsx"

const describeResolution = (found: ActionResolution): string => {
  switch (found._tag) {
    case "Landed":
      return `The first attempt was accepted: ${found.message}`
    case "Accepted":
      return `The venue accepted the action now, and had not accepted it before.${
        found.message === undefined ? "" : ` It refused some legs: ${found.message}`
      }`
    case "Rejected":
      return `The venue accepted neither attempt: ${found.message}`
    case "StillUnknown":
      return `Still unknown. ${found.message}. ${found.advice}`
    case "Absent":
      return "The log no longer contains this action: it was settled or forgotten in the meantime."
  }
}

/** Asks before an action is sent again. */
const resolving = ({ actionType, openedAt }: UnansweredAction, act: () => Promise<void>): Words.Confirmation => ({
  title: "Send this action again?",
  verb: "Send the same bytes",
  act,
  consequences: (
    <>
      <p>
        The gateway sends the signed bytes of this <code>{actionType}</code>{" "}
        to the venue again, unchanged. If the venue accepted the first attempt, it refuses this attempt because the
        nonce is used. The refusal then shows that the first attempt was accepted.
      </p>
      <p>
        <strong>If the venue did not accept the first attempt, the action can be executed now</strong>,{" "}
        {Words.age(openedAt)} after the action was first sent. Nothing else is signed or sent.
      </p>
    </>
  )
})

/** Asks before an action is forgotten. */
const forgetting = (act: () => Promise<void>): Words.Confirmation => ({
  title: "Forget this action?",
  verb: "Forget it",
  act,
  consequences: (
    <>
      <p>
        The entry is removed and nothing is sent. The action's nonce stays used: this gateway will not relay another
        action with this nonce.
      </p>
      <p>Do this only if you know the outcome of the action from another source.</p>
    </>
  )
})

const row = (
  { actionType, id, nonce, openedAt, signer, state }: UnansweredAction,
  { onForget, onResolve }: { readonly onForget: () => void; readonly onResolve: () => void }
) => ({
  key: id,
  cells: [
    <span key="state" class={`tag ${state === "unknown" ? "bad" : ""}`}>{state}</span>,
    <span key="age" title={Words.instant(openedAt)}>{Words.age(openedAt)}</span>,
    actionType,
    <code key="signer" title={signer}>{signer === undefined ? "–" : Words.short(signer)}</code>,
    nonce,
    <code key="id" title={id}>{Words.short(id)}</code>,
    state === "sent" ? <span key="open" class="muted">a response can still arrive</span> : (
      <span key="open" class="row">
        <button type="button" onClick={onResolve}>Find out …</button>
        <button type="button" class="plain" onClick={onForget}>Forget …</button>
      </span>
    )
  ]
})

/** The console's panel of signed actions with unknown outcome. */
export const Actions = () => {
  const [last, refresh] = usePolled(Admin.actions)
  const [dialog, confirm] = Words.useConfirmation()
  const told = useSignal<string | undefined>(undefined)
  const resolve = async (id: string): Promise<void> => {
    told.value = "Querying the venue …"
    const outcome = await Gateway.run(Admin.resolve(id))
    told.value = "failure" in outcome ? outcome.failure : describeResolution(outcome.value)
    await refresh()
  }
  const forget = async (id: string): Promise<void> => {
    const outcome = await Gateway.run(Admin.forget(id))
    told.value = "failure" in outcome
      ? outcome.failure
      : outcome.value
      ? "Action forgotten; its nonce stays used."
      : "The log no longer contains this action."
    await refresh()
  }
  const log = readiness.value?.actionLog
  return (
    <section class="card" aria-labelledby="actions-title">
      <h2 id="actions-title">Signed actions of unknown outcome</h2>
      {log === undefined ? null : (
        <p class="muted">
          The log is stored in {log.backing} and is{" "}
          <span class={log.state === "up" ? "good" : "bad"}>{log.state}</span>; it has {log.room === "enough"
            ? "enough room"
            : log.room === "full"
            ? "no free capacity: signed actions are refused"
            : "little free capacity"}.
        </p>
      )}
      <p aria-live="polite">{told.value}</p>
      {last === undefined
        ? <p class="muted">Reading …</p>
        : "failure" in last
        ? <p class="bad" role="alert">{last.failure}</p>
        : last.value.length === 0
        ? (
          <>
            <p class="muted">None: the outcome of every action is known.</p>
            <p class="muted">An action whose response is lost appears here until its outcome is known.</p>
          </>
        )
        : (
          <Grid
            label="Actions"
            text
            columns={["State", "Age", "Action", "Signer", "Nonce", "ID", "What to do"]}
            rows={last.value.map((action) =>
              row(action, {
                onResolve: () => confirm(resolving(action, () => resolve(action.id))),
                onForget: () => confirm(forgetting(() => forget(action.id)))
              })
            )}
          />
        )}
      {dialog}
    </section>
  )
}
