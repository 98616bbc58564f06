/** The order ticket of the sandbox's trader: its terms, its cost and fee before it is sent, and its outcome. */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Struct from "effect/Struct"
import { useEffect } from "preact/hooks"
import { current } from "../account/AccountState.tsx"
import * as Gateway from "../Gateway.ts"
import * as Table from "../Table.tsx"
import { quote } from "./Coins.tsx"
import { chosen, market, mid } from "./Markets.ts"
import * as Orders from "./Orders.ts"

type Draft = Omit<Orders.Terms, "coin">

/** The terms in the form. */
export const draft = signal<Draft>({
  side: "buy",
  type: "market",
  size: "0.05",
  price: "",
  timeInForce: "Gtc",
  isReduceOnly: false
})

/** Changes terms in the form. */
export const change = (changed: Partial<Draft>): void => {
  draft.value = { ...draft.value, ...changed }
}

/** Puts a price into the form. A market order becomes a limit order. */
export const pick = (price: string): void =>
  change({ price, type: draft.value.type === "market" ? "limit" : draft.value.type })

/** Changes the type of the order. Its price begins with the best price of its own side. */
const retype = (type: Draft["type"]): void => {
  const [[bid], [ask]] = market.value.levels
  const best = draft.value.side === "buy" ? bid : ask
  change({ type, ...draft.value.price === "" && best !== undefined ? { price: best.px } : {} })
}

interface Rates {
  readonly taker: number
  readonly maker: number
}

/** The fee rates of perpetuals and of spot. */
const rates = signal<{ readonly perpetual: Rates; readonly spot: Rates } | undefined>(undefined)

const readRates = async (): Promise<void> => {
  const outcome = await Gateway.run(Info.userFees({ user: trader.address }))
  if ("failure" in outcome) return
  const { userAddRate, userCrossRate, userSpotAddRate, userSpotCrossRate } = outcome.value
  rates.value = {
    perpetual: { taker: Number(userCrossRate), maker: Number(userAddRate) },
    spot: { taker: Number(userSpotCrossRate ?? userCrossRate), maker: Number(userSpotAddRate ?? userAddRate) }
  }
}

/** The leverage that was set here, by coin. */
const leverages = signal<{ readonly [coin: string]: number }>({})

/** The leverage of the coin: as set here, or as the position has it, or the maximum. */
const leverage = computed(() => {
  const coin = chosen.value
  if (coin === undefined) return 1
  const position = current.value?.perpetuals.assetPositions.find(({ position }) => position.coin === coin.coin)
  return leverages.value[coin.coin] ?? position?.position.leverage.value ?? coin.maxLeverage
})

/** The cost of the order in the form; `undefined` until the price and the size are known. */
const cost = computed(() => {
  const { price, size, timeInForce, type } = draft.value
  const coin = chosen.value
  const at = type === "market" ? mid.value : Number(price)
  if (coin === undefined || at === undefined || !(at > 0) || !(Number(size) > 0)) return undefined
  const value = at * Number(size)
  const isMaker = type === "limit" && timeInForce !== "Ioc"
  const rate = rates.value?.[coin.kind][isMaker ? "maker" : "taker"] ?? 0
  return { value, margin: value / leverage.value, fee: value * rate, rate, isMaker }
})

/** The shares of the available money that buttons fill in as the size. */
const shares = [0.1, 0.25, 0.5, 1] as const

/** The share of the money that an order can use: the rest is for the fee and the slippage. */
const usable = 0.95

/** Returns the size that a share of the available money buys, truncated to the lot size. */
const sizeFor = (share: number): string | undefined => {
  const { isReduceOnly, price, side, type } = draft.value
  const state = current.value
  const coin = chosen.value
  const at = type === "market" ? mid.value : Number(price)
  if (state === undefined || coin === undefined || at === undefined || !(at > 0)) return undefined
  const position = state.perpetuals.assetPositions.find(({ position }) => position.coin === coin.coin)
  const balance = (token: string) => {
    const found = state.spot.balances.find((each) => each.coin === token)
    return Number(found?.total ?? 0) - Number(found?.hold ?? 0)
  }
  const [base = ""] = coin.label.split("/")
  const most = isReduceOnly
    ? Math.abs(Number(position?.position.szi ?? 0))
    : coin.kind === "spot"
    ? side === "buy" ? balance(quote(coin.coin)) * usable / at : balance(base)
    : Number(state.perpetuals.withdrawable) * leverage.value * usable / at
  const scale = 10 ** coin.szDecimals
  return String(Math.floor(most * share * scale) / scale)
}

const Sides = () => (
  <fieldset class="sides">
    <legend class="hidden">Side</legend>
    {(["buy", "sell"] as const).map((side) => (
      <label key={side} class={side}>
        <input
          type="radio"
          name="side"
          value={side}
          checked={draft.value.side === side}
          onChange={() => change({ side })}
        />
        {side === "buy" ? "Buy" : "Sell"} <kbd>{side[0]}</kbd>
      </label>
    ))}
  </fieldset>
)

const Choice = <Name extends string>({ label, names, onChange, value }: {
  readonly label: string
  readonly names: { readonly [N in Name]: string }
  readonly value: Name
  readonly onChange: (name: Name) => void
}) => (
  <label>
    {label}
    <select
      value={value}
      onChange={({ currentTarget }) => {
        const found = Struct.keys(names).find((name) => name === currentTarget.value)
        if (found !== undefined) onChange(found)
      }}
    >
      {Struct.keys(names).map((name) => <option key={name} value={name}>{names[name]}</option>)}
    </select>
  </label>
)

/** An input for a positive decimal, with its unit. */
const Amount = ({ label, name, onInput, unit, value }: {
  readonly label: string
  readonly name: string
  readonly unit: string
  readonly value: string
  readonly onInput: (value: string) => void
}) => (
  <div>
    <label for={`ticket-${name}`}>{label}</label>
    <span class="unit">
      <input
        id={`ticket-${name}`}
        name={name}
        required
        inputMode="decimal"
        autocomplete="off"
        pattern="[0-9]+([.][0-9]+)?"
        title="A positive number, such as 0.05"
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <span>{unit}</span>
    </span>
  </div>
)

const Leverage = () => {
  const coin = chosen.value
  if (coin === undefined || coin.kind === "spot") return null
  return (
    <label>
      <span>
        Leverage <output>{leverage.value}×</output>{" "}
        <span class="muted">{coin.isIsolatedOnly ? "isolated" : "cross"}</span>
      </span>
      <input
        type="range"
        min={1}
        max={coin.maxLeverage}
        value={leverage.value}
        onChange={({ currentTarget }) => {
          const wanted = Number(currentTarget.value)
          leverages.value = { ...leverages.value, [coin.coin]: wanted }
          void Orders.setLeverage(coin.coin, wanted, !coin.isIsolatedOnly)
        }}
      />
    </label>
  )
}

const Cost = () => {
  const found = cost.value
  const unit = chosen.value === undefined ? "" : quote(chosen.value.coin)
  const money = (value: number | undefined): string => value === undefined ? "–" : `${Table.fixed(value)} ${unit}`
  const rows = {
    "Order value": money(found?.value),
    ...chosen.value?.kind === "spot" ? {} : { "Margin": money(found?.margin) },
    "Fee": found === undefined
      ? "–"
      : `${Table.fixed(found.fee, 4)} ${unit} (${found.isMaker ? "maker" : "taker"}, ${
        Number((found.rate * 100).toFixed(4))
      } %)`,
    ...draft.value.type === "market" ? { "Price": `at most ${Orders.slippage} % from the mid price` } : {}
  }
  return (
    <dl class="cost">
      {Object.entries(rows).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const guide = "https://github.com/trigate/trigate/blob/main/docs/guides/unknown-outcomes.md"

/** The report on the latest action. If its response was lost: the client order ID, and a link to the guide. */
export const Outcome = () => {
  const now = Orders.report.value
  return (
    <div role="status" class="outcome">
      {now === undefined ? null : (
        <>
          {now.says.map((text, at) => (
            <p key={text} class={at > 0 ? "muted" : now.tone === "wait" ? "wait" : now.tone}>{text}</p>
          ))}
          {now.cloid === undefined ? null : (
            <p class="muted">
              Client order ID <code>{now.cloid}</code>
              <br />
              Guide: <a href={guide} rel="noreferrer">When the outcome is unknown</a>
            </p>
          )}
        </>
      )}
    </div>
  )
}

/** The card with the ticket. */
export const Ticket = () => {
  useEffect(() => void readRates(), [])
  const { isReduceOnly, price, side, size, timeInForce, type } = draft.value
  const coin = chosen.value
  const [base = ""] = (coin?.label ?? "").split("/")
  return (
    <section class="card ticket" aria-label="Order ticket">
      <form
        onFocusIn={Orders.prepare}
        onSubmit={(event) => {
          event.preventDefault()
          if (coin !== undefined) void Orders.submit({ ...draft.value, coin: coin.coin })
        }}
      >
        <Sides />
        <Choice label="Type" names={Orders.types} value={type} onChange={retype} />
        {type === "market" ? null : (
          <Amount
            label={type === "limit" ? "Price" : "Trigger price"}
            name="price"
            unit={coin === undefined ? "" : quote(coin.coin)}
            value={price}
            onInput={(price) => change({ price })}
          />
        )}
        <Amount label="Size" name="size" unit={base} value={size} onInput={(size) => change({ size })} />
        <div class="shares" role="group" aria-label="Share of the available money">
          {shares.map((share) => (
            <button
              key={share}
              type="button"
              class="plain"
              onClick={() => {
                const size = sizeFor(share)
                if (size !== undefined) change({ size })
              }}
            >
              {share * 100} %
            </button>
          ))}
        </div>
        {type === "limit"
          ? (
            <Choice
              label="Time in force"
              names={Orders.timesInForce}
              value={timeInForce}
              onChange={(timeInForce) => change({ timeInForce })}
            />
          )
          : null}
        <Leverage />
        {coin?.kind === "spot" ? null : (
          <label class="check">
            <input
              type="checkbox"
              checked={isReduceOnly}
              onChange={({ currentTarget }) => change({ isReduceOnly: currentTarget.checked })}
            />{" "}
            Reduce only
          </label>
        )}
        <Cost />
        <button type="submit" class={side} disabled={coin === undefined}>
          {side === "buy" ? "Buy" : "Sell"} {base}
        </button>
      </form>
      <Outcome />
    </section>
  )
}
