/** The inspector: paste a signed body and see how the gateway reads it. Nothing is sent to a venue, and nothing is stored. */
import { signal } from "@preact/signals"
import * as Paths from "@trigate/api/Paths"
import { Inspection } from "@trigate/domain/unstable/Inspection"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Gateway from "./Gateway.ts"
import { Facts, formTexts, Grid, plain } from "./Table.tsx"

type Seen = { readonly inspection: Inspection } | { readonly refusal: string }

const seen = signal<Seen | undefined>(undefined)

/** The body and the expected signer in the form. */
const draft = signal({ body: "", expected: "" })

/** An example body, signed with a public test key. The `v` of its signature is wrong, to show a diagnosis. */
const example = {
  body: JSON.stringify({
    action: { type: "evmUserModify", usingBigBlocks: true },
    nonce: 1_705_234_567_890,
    signature: {
      r: "0x1d9faee8e7933cb344213de34ad3cd04bc441a8bbb04ed875a62bea053b604d0",
      s: "0x4670c3db7dc3da98d2578c1054177705f309af08e8ae4d57180f241bbb307714",
      v: 27
    }
  }),
  expected: "0x14791697260e4c9a71f18484c9f997b308e59325"
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Inspection))
const decodeProblem = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ detail: Schema.String })))

const inspect = async (body: string, expected: string): Promise<void> => {
  const query = expected === "" ? "" : `?x-trigate-expected-signer=${encodeURIComponent(expected)}`
  const outcome = await Gateway.run(Gateway.post(`${Paths.inspect}${query}`, body))
  if ("failure" in outcome) {
    seen.value = { refusal: outcome.failure }
    return
  }
  const { text } = outcome.value
  seen.value = Option.match(decode(text), {
    onSome: (inspection): Seen => ({ inspection }),
    onNone: (): Seen => ({
      refusal: Option.match(decodeProblem(text), { onNone: () => text, onSome: ({ detail }) => detail })
    })
  })
}

/** Text with a button that copies it. */
const Copyable = ({ text, title }: { readonly text: string; readonly title: string }) => (
  <details>
    <summary>{title}</summary>
    <button type="button" aria-label={`Copy: ${title}`} onClick={() => void navigator.clipboard.writeText(text)}>
      Copy
    </button>
    <pre tabIndex={0} role="region" aria-label={title}>{text}</pre>
  </details>
)

const correctedTitle = ({ signature, verified }: NonNullable<Inspection["corrected"]>): string =>
  `The corrected body, ${signature === "kept" ? "with its signature" : "to be signed again"}${
    verified ? "" : "; not verified"
  }`

const Verdict = ({ inspection }: { readonly inspection: Inspection }) => {
  const {
    actionType,
    diagnosis,
    differences,
    inner = [],
    network,
    nonce,
    otherNetwork,
    outer,
    scheme,
    unsigned,
    warnings
  } = inspection
  return (
    <section class="card" aria-labelledby="verdict" aria-live="polite">
      <h2 id="verdict">Verdict</h2>
      <p class={diagnosis.verdict === "fits" ? "good" : diagnosis.mistakes.length > 0 ? "bad" : ""}>
        {plain(diagnosis.detail)}
      </p>
      {unsigned === undefined ? null : <p class="bad">{plain(unsigned)}</p>}
      {warnings.map((warning) => <p class="bad" key={warning}>{plain(warning)}</p>)}
      <Facts
        pairs={[
          ["Action", actionType],
          ["Network", network],
          ["Scheme", scheme],
          ["Recovered signer", outer?.signer],
          ...inner.map(({ signer }, at) => [`Inner signer ${at + 1}`, signer] as const),
          ["Signer, if signed for the other network", otherNetwork?.signer],
          ["Nonce", `${nonce.value}: ${nonce.inWindow ? "inside" : "outside"} the venue's nonce window`],
          ["Digest", outer?.digest],
          ["Connection id", inspection.connectionId]
        ]}
      />
      {differences.length === 0 ? null : (
        <>
          <p class="muted">Differences from the form that the venue hashes</p>
          <Grid
            label="Differences"
            columns={["Where", "Sent", "Required value"]}
            rows={differences.map(({ canonical = "nothing", path, sent = "nothing" }) => ({
              key: path.join("."),
              cells: [path.join("."), sent, canonical].map((text) => <code key={text}>{text}</code>)
            }))}
          />
        </>
      )}
      {inspection.corrected === undefined
        ? null
        : <Copyable title={correctedTitle(inspection.corrected)} text={inspection.corrected.body} />}
      {inspection.canonicalAction === undefined ? null : (
        <Copyable
          title="The action as the venue encodes it before hashing"
          text={JSON.stringify(inspection.canonicalAction, undefined, 2)}
        />
      )}
      {inspection.typedData === undefined ?
        null :
        <Copyable title="The message that a wallet signs" text={JSON.stringify(inspection.typedData, undefined, 2)} />}
    </section>
  )
}

/** The console's panel that inspects a signed body. */
export const Inspector = () => {
  const now = seen.value
  return (
    <>
      <section class="card" aria-labelledby="inspector-title">
        <h2 id="inspector-title">Inspect a signed body</h2>
        <p class="muted">
          Paste the body of a <code>POST /exchange</code>. It is sent to this gateway only, and not relayed.
        </p>
        <form
          onSubmit={(event) => {
            const { body = "", expected = "" } = formTexts(event)
            void inspect(body, expected)
          }}
        >
          <label>
            Body
            <textarea
              name="body"
              rows={10}
              required
              spellcheck={false}
              placeholder={`{"action":{…},"nonce":…,"signature":{…}}`}
              value={draft.value.body}
              onInput={({ currentTarget: { value } }) => draft.value = { ...draft.value, body: value }}
            />
          </label>
          <label>
            Who should have signed (optional)
            <input
              name="expected"
              size={44}
              pattern="\s*0x[0-9a-fA-F]{40}\s*"
              placeholder="0x…"
              spellcheck={false}
              value={draft.value.expected}
              onInput={({ currentTarget: { value } }) => draft.value = { ...draft.value, expected: value }}
            />
          </label>
          <div class="row">
            <button type="submit">Inspect</button>
            <button type="button" class="plain" onClick={() => draft.value = example}>Load an example</button>
          </div>
        </form>
      </section>
      {now === undefined
        ? null
        : "refusal" in now
        ? <p class="card bad" role="alert">{now.refusal}</p>
        : <Verdict inspection={now.inspection} />}
    </>
  )
}
