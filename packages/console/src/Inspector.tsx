/** The inspector: paste a signed body and read what the gateway sees in it. Nothing is sent to a venue, and nothing is kept. */
import { signal } from "@preact/signals"
import * as Paths from "@trigate/api/Paths"
import { Inspection } from "@trigate/domain/Inspection"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { textsOf } from "./Form.ts"
import * as Gateway from "./Gateway.ts"

type Seen = { readonly inspection: Inspection } | { readonly refusal: string }

const seen = signal<Seen | undefined>(undefined)

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

const Fact = ({ name, value }: { readonly name: string; readonly value: string | undefined }) =>
  value === undefined ? null : (
    <div>
      <dt>{name}</dt>
      <dd>
        <code>{value}</code>
      </dd>
    </div>
  )

const Verdict = ({ inspection }: { readonly inspection: Inspection }) => {
  const {
    actionType,
    diagnosis,
    differences,
    form,
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
        {diagnosis.detail}
      </p>
      {unsigned === undefined ? null : <p class="bad">{unsigned}</p>}
      {warnings.map((warning) => <p class="bad" key={warning}>{warning}</p>)}
      <dl>
        <Fact name="Action" value={`${actionType} (${form})`} />
        <Fact name="Network" value={network} />
        <Fact name="Scheme" value={scheme} />
        <Fact name="Recovered signer" value={outer?.signer} />
        {inner.map(({ signer }, at) => <Fact key={at} name={`Inner signer ${at + 1}`} value={signer} />)}
        <Fact name="If it was signed for the other network" value={otherNetwork?.signer} />
        <Fact name="Nonce" value={`${nonce.value}: ${nonce.inWindow ? "inside" : "outside"} the venue's window`} />
        <Fact name="Digest" value={outer?.digest} />
        <Fact name="Connection id" value={inspection.connectionId} />
      </dl>
      {differences.length === 0 ? null : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Differences">
          <table>
            <caption>Where the action differs from the form that the venue hashes</caption>
            <thead>
              <tr>
                {["Where", "Sent", "Has to be"].map((name) => <th scope="col" key={name}>{name}</th>)}
              </tr>
            </thead>
            <tbody>
              {differences.map(({ canonical = "nothing", path, sent = "nothing" }) => (
                <tr key={path.join(".")}>
                  <th scope="row">
                    <code>{path.join(".")}</code>
                  </th>
                  <td>
                    <code>{sent}</code>
                  </td>
                  <td>
                    <code>{canonical}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {inspection.canonicalAction === undefined ? null : (
        <details>
          <summary>The action as the venue prints it before hashing</summary>
          <pre>{JSON.stringify(inspection.canonicalAction, undefined, 2)}</pre>
        </details>
      )}
      {inspection.typedData === undefined ? null : (
        <details>
          <summary>What a wallet is asked to sign</summary>
          <pre>{JSON.stringify(inspection.typedData, undefined, 2)}</pre>
        </details>
      )}
    </section>
  )
}

/** The panel. */
export const Inspector = () => {
  const now = seen.value
  return (
    <>
      <section class="card" aria-labelledby="inspector-title">
        <h2 id="inspector-title">Inspect a signed body</h2>
        <p class="muted">
          Paste the body of a <code>POST /exchange</code>. It goes to this gateway only, which relays nothing.
        </p>
        <form
          onSubmit={(event) => {
            const { body = "", expected = "" } = textsOf(event)
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
            />
          </label>
          <label>
            Who should have signed (optional)
            <input name="expected" size={44} pattern="\s*0x[0-9a-fA-F]{40}\s*" placeholder="0x…" spellcheck={false} />
          </label>
          <button type="submit">Inspect</button>
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
