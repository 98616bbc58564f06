/** Asks for a key if the gateway requires one. */
import { formTexts } from "./Form.ts"
import * as Gateway from "./Gateway.ts"

/** The form for the caller's key. The page shows it instead of a panel until the gateway accepts the key. */
export const KeyForm = () => (
  <section class="card" aria-labelledby="key-title">
    <h2 id="key-title">This gateway requires a key</h2>
    {Gateway.hasKey.value ? <p class="bad" role="alert">The gateway does not accept that key.</p> : null}
    <p class="muted">
      The action log, the callers and the requests require a key with the class{" "}
      <code>admin</code>, all other panels a key with <code>read</code> and{" "}
      <code>inspect</code>. The page stores the key in memory only and sends it to this gateway only. The key is lost
      when you close or reload the page.
    </p>
    <form onSubmit={(event) => Gateway.useKey(formTexts(event)["key"])}>
      <label>
        Key
        <input
          name="key"
          type="password"
          size={44}
          required
          autocomplete="off"
          spellcheck={false}
          placeholder="tg_…"
        />
      </label>
      <button type="submit">Use the key</button>
    </form>
  </section>
)
