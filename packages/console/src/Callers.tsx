/** The keys of callers: their scopes and quotas. An admin creates, rotates and revokes them here. */
import { useSignal } from "@preact/signals"
import { type CallerKey, type IssuedKey, KeyCreation } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import type { Connection } from "@trigate/client/Connection"
import { chains } from "@trigate/domain/Caller"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Gateway from "./Gateway.ts"
import { usePolled } from "./Live.ts"
import * as Table from "./Table.tsx"

const classes = ["read", "sign", "inspect", "admin"] as const

const limits = {
  requestsPerSecond: "Requests per second",
  burst: "Maximum requests in a burst",
  weightPerMinute: "Weight per minute",
  unitsPerSecond: "Request units per second",
  concurrentCalls: "Concurrent calls",
  sockets: "WebSockets",
  subscriptions: "Subscriptions per WebSocket",
  messagesPerMinute: "Messages per minute"
} as const

const splitWords = (text = ""): ReadonlyArray<string> => text.split(/[\s,]+/u).filter((word) => word !== "")

/** Returns the fields that have a value; `undefined` if there are none. */
const filled = (members: { readonly [name: string]: number | ReadonlyArray<string> }) => {
  const found = Object.entries(members).filter(([, value]) => typeof value === "number" ? value > 0 : value.length > 0)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

const decode = Schema.decodeUnknownResult(KeyCreation)

/** Decodes the texts of a submitted form to the request that creates a key. Returns an error if a text is invalid. */
const toCreation = (texts: { readonly [name: string]: string }) => {
  const narrower = filled({
    chains: chains.filter((name) => texts[`chain-${name}`] !== undefined),
    operations: splitWords(texts["operations"]),
    signers: splitWords(texts["signers"])
  })
  const quota = filled(Object.fromEntries(Object.keys(limits).map((name) => [name, Number(texts[name])])))
  const days = Number(texts["days"])
  return decode({
    name: texts["name"],
    // always sent, even if all boxes are checked: without this field, all classes except admin are allowed; an empty
    // list allows none
    scope: { classes: classes.filter((name) => texts[`class-${name}`] !== undefined), ...narrower },
    ...(quota === undefined ? {} : { quota }),
    ...(days > 0 ? { lifetime: Math.round(days * 86_400_000) } : {})
  })
}

/** Formats the scope and the quota of a key, one line each. */
const keyLines = (
  { quota = {}, scope: { chains, classes, operations, signers } = {} }: CallerKey
) => [
  [classes?.join(", ") ?? "all but admin", ...(chains === undefined ? [] : [`on ${chains.join(", ")}`])].join(" "),
  ...(operations === undefined ? [] : [`only ${operations.join(", ")}`]),
  ...(signers === undefined ? [] : [`for ${signers.map(Table.short).join(", ")}`]),
  ...Object.entries(limits).flatMap(([name, title]) =>
    Object.entries(quota).filter(([limited]) => limited === name).map(([, amount]) => `${title}: ${amount}`)
  )
]

const row = (
  record: CallerKey,
  { onRevoke, onRotate }: { readonly onRevoke: () => void; readonly onRotate: () => void }
) => {
  const { createdAt, expiresAt, lastUsedAt, name, prefix, state } = record
  return {
    key: prefix,
    cells: [
      name,
      <code key="key" title={`made ${Table.instant(createdAt)}`}>{prefix}</code>,
      <span key="state" class={`tag ${state === "valid" ? "good" : ""}`}>{state}</span>,
      expiresAt === undefined ? "–" : Table.instant(expiresAt),
      lastUsedAt === undefined ? "–" : Table.instant(lastUsedAt),
      <div key="scope" class="long">{keyLines(record).map((line) => <div key={line}>{line}</div>)}</div>,
      state !== "valid" ? null : (
        <span key="change" class="row">
          <button type="button" class="plain" onClick={onRotate}>Rotate …</button>
          <button type="button" class="plain" onClick={onRevoke}>Revoke …</button>
        </span>
      )
    ]
  }
}

/** Asks before a caller gets another key. */
const rotating = (name: string, act: () => Promise<void>): Table.Confirmation => ({
  title: `Another key for ${name}?`,
  verb: "Make it",
  act,
  consequences: (
    <p>
      The new key has the same scope, quota and lifetime. The current keys of {name}{" "}
      remain valid for a day, so that the caller can switch without an interruption.
    </p>
  )
})

/** Asks before a key is revoked. */
const revoking = ({ name, prefix }: CallerKey, act: () => Promise<void>): Table.Confirmation => ({
  title: `Revoke ${prefix} of ${name}?`,
  verb: "Revoke it",
  act,
  consequences: (
    <p>
      Every gateway with this key store refuses the key within seconds. A revoked key never becomes valid again.
    </p>
  )
})

/** Shows a newly created key. The key is set as a DOM property, so that it is not part of the page's HTML. */
const Issued = ({ issued: { key, record }, onDone }: {
  readonly issued: IssuedKey
  readonly onDone: () => void
}) => (
  <section class="card" aria-labelledby="issued-title">
    <h2 id="issued-title">The key of {record.name}, shown only once</h2>
    <p class="muted">
      Only its hash is stored. Logs show its prefix, <code>{record.prefix}</code>; it is valid{" "}
      {record.expiresAt === undefined ? "until it is revoked" : `until ${Table.instant(record.expiresAt)} UTC`}.
    </p>
    <p class="row">
      <input
        aria-label="New key"
        class="secret"
        readOnly
        size={78}
        ref={(input) => {
          if (input !== null) input.value = Redacted.value(key)
        }}
        onFocus={(event) => event.currentTarget.select()}
      />
      <button type="button" onClick={() => void navigator.clipboard.writeText(Redacted.value(key))}>Copy</button>
      <button type="button" class="plain" onClick={onDone}>I have it</button>
    </p>
  </section>
)

const Checks = ({ kind, legend, names, on }: {
  readonly kind: string
  readonly legend: string
  readonly names: ReadonlyArray<string>
  readonly on: ReadonlyArray<string>
}) => (
  <fieldset>
    <legend>{legend}</legend>
    {names.map((name) => (
      <label class="check" key={name}>
        <input type="checkbox" name={`${kind}-${name}`} defaultChecked={on.includes(name)} /> {name}
      </label>
    ))}
  </fieldset>
)

const Creation = ({ onCreate }: { readonly onCreate: (creation: KeyCreation) => void }) => {
  const failure = useSignal<string | undefined>(undefined)
  return (
    <details class="card">
      <summary>Make a key for a caller that has no valid key</summary>
      <form
        class="grid"
        onSubmit={(event) =>
          Result.match(toCreation(Table.formTexts(event)), {
            onFailure: ({ message }) => {
              failure.value = message
            },
            onSuccess: (creation) => {
              failure.value = undefined
              onCreate(creation)
            }
          })}
      >
        <label>
          Name{" "}
          <input
            name="name"
            required
            maxLength={64}
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            placeholder="desk"
            spellcheck={false}
          />
        </label>
        <label>
          Valid for days <input name="days" type="number" min={1} size={6} placeholder="for ever" />
        </label>
        <Checks kind="class" legend="May" names={classes} on={["read", "sign", "inspect"]} />
        <Checks kind="chain" legend="On these chains (all if empty)" names={chains} on={[]} />
        <label class="wide">
          Only these operations (all if empty){" "}
          <input name="operations" placeholder="spotMeta eth_call" spellcheck={false} />
        </label>
        <label class="wide">
          Only for these signers (all if empty) <input name="signers" placeholder="0x…" spellcheck={false} />
        </label>
        {Object.entries(limits).map(([name, title]) => (
          <label key={name}>
            {title} <input name={name} type="number" min={0} step="any" placeholder="no limit" />
          </label>
        ))}
        <button type="submit">Make the key</button>
      </form>
      {failure.value === undefined ? null : <p class="bad" role="alert">{failure.value}</p>}
    </details>
  )
}

/** The console's panel of callers' keys. */
export const Callers = () => {
  const [last, refresh] = usePolled(Admin.keys)
  const [dialog, confirm] = Table.useConfirmation()
  const issued = useSignal<IssuedKey | undefined>(undefined)
  const failure = useSignal<string | undefined>(undefined)
  const change = async (call: Effect.Effect<IssuedKey | undefined, CallFailure, Connection>): Promise<void> => {
    const outcome = await Gateway.run(call)
    failure.value = "failure" in outcome ? outcome.failure : undefined
    if ("value" in outcome) issued.value = outcome.value
    await refresh()
  }
  const all = Gateway.place.value.params["all"] === "yes"
  if (last === undefined) return <p class="muted">Reading …</p>
  if ("failure" in last) return <p class="card bad" role="alert">{last.failure}</p>
  if (!last.value.asked) {
    return (
      <section class="card" aria-labelledby="keys-title">
        <h2 id="keys-title">This gateway does not require keys</h2>
        <p>
          Every client that can reach the gateway can call it. <code>trigate keys create</code>{" "}
          creates the first key, and <code>TRIGATE_CALLERS</code>{" "}
          makes the gateway require keys. You can create keys on this page only after that, because until then any
          client could create a key for later use.
        </p>
        <p class="muted">
          Callers are identified by their IP address: see <a href="#weight">who used the weight</a>.
        </p>
      </section>
    )
  }
  const keys = last.value.keys.filter(({ state }) => all || state === "valid")
  return (
    <>
      {issued.value === undefined ? null : (
        <Issued
          key={issued.value.record.prefix}
          issued={issued.value}
          onDone={() => {
            issued.value = undefined
          }}
        />
      )}
      {failure.value === undefined ? null : <p class="card bad" role="alert">{failure.value}</p>}
      <section class="card" aria-labelledby="keys-title">
        <h2 id="keys-title">Keys</h2>
        <label class="check">
          <input
            type="checkbox"
            checked={all}
            onChange={() => Gateway.go("callers", all ? {} : { all: "yes" })}
          />{" "}
          Include expired and revoked keys
        </label>
        <Table.Grid
          label="Keys"
          text
          columns={["Caller", "Key", "State", "Valid until", "Last used", "May", "What to do"]}
          rows={keys.map((record) =>
            row(record, {
              onRotate: () => confirm(rotating(record.name, () => change(Admin.rotateKey(record.name)))),
              onRevoke: () =>
                confirm(
                  revoking(record, () =>
                    change(Effect.as(Admin.revokeKeys(record.name, { prefix: record.prefix }), undefined)))
                )
            })
          )}
        />
        <p class="muted">Times are UTC.</p>
      </section>
      <Creation
        key={issued.value?.record.prefix}
        onCreate={(creation) =>
          void change(Admin.createKey(creation))}
      />
      {dialog}
    </>
  )
}
