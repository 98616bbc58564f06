/** The console: one page about one gateway. */
import { signal } from "@preact/signals"
import { type ComponentType, render } from "preact"
import * as Gateway from "./Gateway.ts"
import { lazily } from "./Lazy.tsx"
import * as Live from "./Live.ts"
import * as Table from "./Table.tsx"

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
    <form onSubmit={(event) => Gateway.useKey(Table.formTexts(event)["key"])}>
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

interface Panel {
  readonly title: string
  readonly Body: ComponentType
  /** Whether the panel is shown only if the gateway is a sandbox. */
  readonly isPaper?: boolean
}

/** The console's panels by navigation group. In each group, the key of a panel is the panel's name in links. */
const groups: { readonly [title: string]: { readonly [name: string]: Panel } } = {
  Overview: {
    overview: { title: "Overview", Body: lazily(() => import("./Overview.tsx").then(({ Overview }) => Overview)) }
  },
  Market: {
    trade: {
      title: "Trade",
      Body: lazily(() => import("./trade/Trade.tsx").then(({ Trade }) => Trade)),
      isPaper: true
    },
    candles: {
      title: "Candles",
      Body: lazily(() => import("./candles/Candles.tsx").then(({ Candles }) => Candles))
    },
    account: {
      title: "Account",
      Body: lazily(() => import("./account/Account.tsx").then(({ Account }) => Account))
    }
  },
  Tools: {
    inspect: { title: "Inspector", Body: lazily(() => import("./Inspector.tsx").then(({ Inspector }) => Inspector)) },
    lookup: { title: "Look up", Body: lazily(() => import("./Lookup.tsx").then(({ Lookup }) => Lookup)) }
  },
  Operations: {
    chains: { title: "Chains", Body: lazily(() => import("./Chains.tsx").then(({ Chains }) => Chains)) },
    weight: { title: "Weight", Body: lazily(() => import("./Weight.tsx").then(({ Weight }) => Weight)) },
    streams: { title: "Streams", Body: lazily(() => import("./Streams.tsx").then(({ Streams }) => Streams)) },
    actions: { title: "Action log", Body: lazily(() => import("./Actions.tsx").then(({ Actions }) => Actions)) },
    guard: { title: "Guard", Body: lazily(() => import("./Guard.tsx").then(({ Guard }) => Guard)) },
    callers: { title: "Callers", Body: lazily(() => import("./Callers.tsx").then(({ Callers }) => Callers)) },
    requests: { title: "Requests", Body: lazily(() => import("./Requests.tsx").then(({ Requests }) => Requests)) },
    settings: { title: "Settings", Body: lazily(() => import("./Settings.tsx").then(({ Settings }) => Settings)) }
  }
}

const panels: { readonly [name: string]: Panel } = Object.fromEntries(
  Object.values(groups).flatMap((group) => Object.entries(group))
)

const Banner = () => {
  const ready = Live.readiness.value
  const trouble = Live.trouble.value
  if (Gateway.isRefused.value) return null
  if (trouble !== undefined) {
    const readAt = Live.readAt.value
    return (
      <p class="banner bad" role="alert">
        {trouble}
        {readAt === undefined ? "" : `; this page shows the state at ${Table.clock(readAt).slice(0, 8)} UTC`}
      </p>
    )
  }
  if (ready === undefined) return null
  return (
    <p class="banner">
      {ready.sandbox ? "Sandbox: nothing here is real" : ready.network}
      {ready.status === "draining" ? " · draining" : ""}
    </p>
  )
}

/** Whether the navigation of a narrow window is open. */
const isMenuOpen = signal(false)

const Navigation = ({ panel }: { readonly panel: string }) => (
  <nav id="panels" aria-label="Panels" class={isMenuOpen.value ? "open" : ""}>
    {Object.entries(groups).map(([group, panels]) => (
      <div key={group} role="group" aria-label={group}>
        {Object.values(panels).some(({ title }) => title === group)
          ? null
          : <span aria-hidden="true">{group}</span>}
        {Object.entries(panels).filter(([, { isPaper }]) =>
          isPaper !== true || Live.isSandbox.value === true
        )
          .map(([name, { title }]) => (
            <a
              key={name}
              href={Gateway.linkTo(name)}
              aria-current={name === panel ? "page" : undefined}
              onClick={() => (isMenuOpen.value = false)}
            >
              {title}
            </a>
          ))}
        {group === "Tools" ? <a href="docs">API reference</a> : null}
      </div>
    ))}
  </nav>
)

const nowhere: Panel = { title: "Nothing here", Body: () => <p class="card">There is no such panel.</p> }

/** Shown in place of a panel for sandboxes, until the gateway has said whether it is one. */
const NotPaper = () => {
  const ready = Live.readiness.value
  return ready === undefined
    ? <p class="muted">Reading …</p>
    : (
      <p class="card">
        This gateway is not a sandbox: it sends orders to {ready.network}. Start one with <code>trigate sandbox</code>.
      </p>
    )
}

const App = () => {
  const { panel } = Gateway.place.value
  const { Body: Own, isPaper, title } = panels[panel] ?? nowhere
  const Body = isPaper === true && Live.isSandbox.value !== true ? NotPaper : Own
  document.title = `${title} · Trigate`
  return (
    <>
      <a class="skip" href="#main">Skip to the panel</a>
      <header>
        <span class="name">
          <img src="./icon.svg" alt="" />
          Trigate
        </span>
        <Banner />
        {Gateway.hasKey.value
          ? <button type="button" class="plain" onClick={() => Gateway.useKey(undefined)}>Forget the key</button>
          : null}
        <button
          type="button"
          class="plain menu"
          aria-expanded={isMenuOpen.value}
          aria-controls="panels"
          onClick={() => (isMenuOpen.value = !isMenuOpen.value)}
        >
          Menu
        </button>
        <Navigation panel={panel} />
      </header>
      <main id="main" tabIndex={-1}>
        <h1>{title}</h1>
        {Gateway.isRefused.value ? <KeyForm /> : <Body />}
      </main>
    </>
  )
}

Live.start()
render(<App />, document.body)
