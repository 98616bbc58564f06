/**
 * Paper trading in a sandbox: an order ticket for the sandbox's trader, its orders, positions and fills, and the faults
 * of the venue.
 */
import { signal } from "@preact/signals"
import * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import * as Sandbox from "@trigate/client/Sandbox"
import type { ActionEntry } from "@trigate/domain/actions/ActionOutcome"
import { adviceFor } from "@trigate/domain/actions/OrderOutcome"
import { longestLatency, none, type SandboxFaults, trader } from "@trigate/domain/unstable/Sandbox"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Struct from "effect/Struct"
import { useEffect } from "preact/hooks"
import * as AccountState from "./account/AccountState.tsx"
import * as Gateway from "./Gateway.ts"
import { readiness } from "./Live.ts"
import * as Table from "./Table.tsx"

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

const change = async (call: ReturnType<typeof Sandbox.status>): Promise<void> => {
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

/** The result of the latest action: whether the venue accepted the action, and sentences for the page. */
interface Report {
  readonly isGood: boolean
  readonly says: ReadonlyArray<string>
}

const report = signal<Report | undefined>(undefined)

let lastNonce = 0

/** Returns a nonce that no other action of this page uses. */
const nextNonce = Effect.map(Clock.currentTimeMillis, (now) => lastNonce = Math.max(now, lastNonce + 1))

/** Builds an action with a fresh nonce, signed by the sandbox's trader, whose key is public. */
const signed = Effect.fnUntraced(function*<A, E>(
  build: (nonce: number) => Effect.Effect<A, E, Signer.Signer | VenueProfile.Venue>
) {
  const signer = yield* Signer.makePrivateKey(Redacted.make(trader.privateKey))
  return yield* build(yield* nextNonce).pipe(
    Effect.provideService(Signer.Signer, signer),
    Effect.provideService(VenueProfile.Venue, VenueProfile.profileFor(readiness.value?.network ?? "mainnet"))
  )
})

/** Maximum slippage of a market order from the mid price, in percent. */
const slippage = 5

const place = Effect.fnUntraced(function*(texts: { readonly [name: string]: string }) {
  const { coin = "", price = "", side: sideText, size = "" } = texts
  const side = sideText === "sell" ? "sell" : "buy"
  const asset = yield* Info.asset(coin)
  const terms = { asset: asset.id, side, sizeInBase: size } as const
  const mids = price === "" ? yield* Info.allMids({}) : {}
  const order: OrderAction.Order = price === ""
    ? {
      ...terms,
      priceInQuote: OrderAction.worstPrice(mids[asset.coin] ?? "0", side, slippage, asset),
      timeInForce: "Ioc"
    }
    : { ...terms, priceInQuote: price, timeInForce: "Gtc" }
  return yield* Exchange.submit(yield* signed((nonce) => ActionBuilder.placeOrders({ orders: [order] }, { nonce })))
})

const describe = (entry: ActionEntry): Report => {
  switch (entry._tag) {
    case "Resting":
      return { isGood: true, says: [`Order ${entry.oid} is resting on the book.`] }
    case "Filled":
      return { isGood: true, says: [`Order ${entry.oid} is filled: ${entry.totalSz} at ${entry.avgPx}.`] }
    case "Rejected":
      return {
        isGood: false,
        says: [`Refused (${entry.reason}): ${entry.message}`, adviceFor(entry.reason) ?? ""].filter((text) =>
          text !== ""
        )
      }
    default:
      return { isGood: true, says: ["Done."] }
  }
}

const submit = async (texts: { readonly [name: string]: string }): Promise<void> => {
  report.value = undefined
  const outcome = await Gateway.runOnPaper(place(texts))
  const [entry] = "failure" in outcome ? [] : outcome.value.entries
  report.value = "failure" in outcome
    ? { isGood: false, says: [outcome.failure] }
    : entry === undefined
    ? { isGood: true, says: ["Done."] }
    : describe(entry)
}

const cancel = async (coin: string, oid: number): Promise<void> => {
  const outcome = await Gateway.runOnPaper(Effect.gen(function*() {
    const { id } = yield* Info.asset(coin)
    return yield* Exchange.submit(
      yield* signed((nonce) => ActionBuilder.cancelOrders([{ asset: id, orderId: oid }], { nonce }))
    )
  }))
  report.value = "failure" in outcome
    ? { isGood: false, says: [outcome.failure] }
    : { isGood: true, says: [`Order ${oid} is cancelled.`] }
}

/** Queries the account immediately, instead of waiting for the stream. */
const readAgain = (): void => void AccountState.read(trader.address)

const Form = () => {
  const now = report.value
  return (
    <section class="card" aria-labelledby="ticket-title">
      <h2 id="ticket-title">Paper order</h2>
      <p class="muted">
        You trade as the sandbox's account{" "}
        {Table.short(trader.address)}, whose key is public. Orders are signed here, and checked and matched as the venue
        does.
      </p>
      <form
        class="row"
        onSubmit={(event) => void submit(Table.formTexts(event)).then(readAgain)}
      >
        <label>
          Side{" "}
          <select name="side">
            <option value="buy">buy</option>
            <option value="sell">sell</option>
          </select>
        </label>
        <label>
          Size <input name="size" required inputMode="decimal" size={8} defaultValue="0.05" />
        </label>
        <label>
          Coin <input name="coin" required list="coins" size={10} defaultValue="ETH" spellcheck={false} />
        </label>
        <datalist id="coins">
          {Gateway.coins.value.map((coin) => <option key={coin} value={coin} />)}
        </datalist>
        <label>
          Price <input name="price" inputMode="decimal" size={10} placeholder="at the market" />
        </label>
        <button type="submit">Place the order</button>
      </form>
      <div role="status">
        {now === undefined
          ? null
          : now.says.map((text, at) => <p key={text} class={at === 0 ? now.isGood ? "good" : "bad" : "muted"}>{text}
          </p>)}
      </div>
    </section>
  )
}

/** The console's panel for paper trading in a sandbox. */
export const Ticket = () => {
  useEffect(() => void Gateway.loadCoins(), [])
  useEffect(() => AccountState.follow(trader.address), [])
  return (
    <>
      <Form />
      <Faults />
      <AccountState.AccountTables
        orderActions={(coin, oid) => (
          <button
            key="cancel"
            type="button"
            class="plain"
            aria-label={`Cancel order ${oid}`}
            onClick={() => void cancel(coin, oid).then(readAgain)}
          >
            Cancel
          </button>
        )}
      />
    </>
  )
}
