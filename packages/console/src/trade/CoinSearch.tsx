/** The search for a coin by its name, with its price and its change in a day. */
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { linked } from "../candles/Candles.tsx"
import { go } from "../Gateway.ts"
import * as Table from "../Table.tsx"
import { type Coin, coins } from "./Coins.ts"

/** Maximum number of coins in the list. */
const most = 60

/** Returns the coins whose name contains a text: first those whose name begins with it. */
const search = (text: string): ReadonlyArray<Coin> => {
  const wanted = text.trim().toLowerCase()
  const names = ({ coin, label }: Coin) => [label.toLowerCase(), coin.toLowerCase()]
  const rank = (coin: Coin) => names(coin).some((name) => name.startsWith(wanted)) ? 0 : 1
  return coins.value.filter((coin) => names(coin).some((name) => name.includes(wanted)))
    .toSorted((one, other) => rank(one) - rank(other)).slice(0, most)
}

/** The change of a coin's price in a day, in percent. */
export const Change = (
  { before, price }: { readonly price: string | undefined; readonly before: string | undefined }
) => {
  if (price === undefined || before === undefined) return null
  const percent = (Number(price) / Number(before) - 1) * 100
  return <span class={Table.tone(percent)}>{Table.signed(percent)} %</span>
}

/** The field of the search. The key `/` focuses it. */
export const CoinSearch = ({ coin }: { readonly coin: string }) => {
  const text = useSignal<string | undefined>(undefined)
  const at = useSignal(0)
  const input = useRef<HTMLInputElement>(null)
  const found = text.value === undefined ? [] : search(text.value)
  const marked = found[Math.min(at.value, found.length - 1)]
  const close = (): void => {
    text.value = undefined
    at.value = 0
  }
  const choose = ({ coin }: Coin): void => {
    close()
    input.current?.blur()
    go("trade", linked({ coin }))
  }
  useEffect(() => document.getElementById(`coin-${at.value}`)?.scrollIntoView({ block: "nearest" }), [at.value])
  return (
    <div class="search">
      <input
        ref={input}
        id="coin-search"
        type="text"
        role="combobox"
        aria-label="Coin"
        aria-expanded={text.value !== undefined}
        aria-controls="coin-list"
        aria-activedescendant={marked === undefined ? undefined : `coin-${found.indexOf(marked)}`}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        placeholder="Search coins"
        value={text.value ?? coin}
        onFocus={() => (text.value = "")}
        onBlur={close}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          at.value = 0
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
          if (step !== 0) {
            event.preventDefault()
            at.value = Math.max(0, Math.min(found.length - 1, at.value + step))
          }
          if (event.key === "Enter" && marked !== undefined) choose(marked)
          if (event.key === "Escape") input.current?.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="coin-list" role="listbox" aria-label="Coins" hidden={text.value === undefined}>
        {found.map((each, index) => (
          <li
            key={each.coin}
            id={`coin-${index}`}
            role="option"
            aria-selected={each === marked}
            // before the field loses the focus
            onMouseDown={(event) => {
              event.preventDefault()
              choose(each)
            }}
          >
            <strong>{each.label}</strong>
            <span class="muted">{each.kind}{each.label === each.coin ? "" : ` ${each.coin}`}</span>
            <span>{each.price === undefined ? "" : Table.decimal(each.price)}</span>
            <Change price={each.price} before={each.before} />
          </li>
        ))}
        {text.value !== undefined && found.length === 0
          ? <li role="option" aria-selected={false} class="muted">No coin has this name.</li>
          : null}
      </ul>
    </div>
  )
}
