/** The coins of the venue, with their names and prices, and the search for a coin. */
import { computed, signal, useSignal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { make as makeLookup, type SpotMeta } from "@trigate/domain/info/Market"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { useEffect, useRef } from "preact/hooks"
import * as Gateway from "../Gateway.ts"
import * as Table from "../Table.tsx"

/** A coin that can be traded. */
export interface Coin {
  /** The venue's name of the coin, such as `BTC` or `@107`. */
  readonly coin: string
  /** The name for people, such as `HYPE/USDC`. */
  readonly label: string
  readonly kind: "perpetual" | "spot"
  readonly price: string | undefined
  /** The price a day ago. */
  readonly before: string | undefined
  readonly szDecimals: number
  /** The maximum leverage; 1 for spot. */
  readonly maxLeverage: number
  readonly isIsolatedOnly: boolean
}

const spotCoins = (meta: SpotMeta, mids: { readonly [coin: string]: string }): ReadonlyArray<Coin> => {
  const { tokensOf } = makeLookup(meta)
  return meta.universe.flatMap((pair) => {
    const { base, quote } = tokensOf(pair)
    if (Option.isNone(base) || Option.isNone(quote)) return []
    return [{
      coin: pair.name,
      label: `${base.value.name}/${quote.value.name}`,
      kind: "spot" as const,
      price: mids[pair.name],
      before: undefined,
      szDecimals: base.value.szDecimals,
      maxLeverage: 1,
      isIsolatedOnly: false
    }]
  })
}

const readCoins = Effect.gen(function*() {
  const [dexes, spot, mids] = yield* Effect.all([Info.perpDexs(), Info.spotMeta(), Info.allMids({})], {
    concurrency: "unbounded"
  })
  const perpetuals = yield* Effect.forEach(
    dexes,
    (dex) => Info.metaAndAssetCtxs(dex === null ? {} : { dex: dex.name }),
    { concurrency: "unbounded" }
  )
  return [
    ...perpetuals.flatMap(([{ universe }, contexts]) =>
      universe.flatMap(({ isDelisted, maxLeverage, name, onlyIsolated, szDecimals }, at): ReadonlyArray<Coin> =>
        isDelisted === true ? [] : [{
          coin: name,
          label: name,
          kind: "perpetual",
          price: contexts[at]?.midPx ?? contexts[at]?.markPx,
          before: contexts[at]?.prevDayPx,
          szDecimals,
          maxLeverage,
          isIsolatedOnly: onlyIsolated === true
        }]
      )
    ),
    ...spotCoins(spot, mids)
  ]
})

/** The coins, perpetuals first; empty until they are loaded. */
export const coins = signal<ReadonlyArray<Coin>>([])

const labels = computed(() => new Map(coins.value.map(({ coin, label }) => [coin, label])))

/** Returns the name for people of a coin. */
export const label = (coin: string): string => labels.value.get(coin) ?? coin

/** Returns the token in which a coin is priced. */
export const quote = (coin: string): string => label(coin).split("/")[1] ?? "USDC"

/** Loads the coins and their current prices. */
export const loadCoins = async (): Promise<void> => {
  const outcome = await Gateway.run(readCoins)
  if ("value" in outcome) coins.value = outcome.value
}

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
export const CoinSearch = ({ coin, onChoose }: {
  readonly coin: string
  readonly onChoose: (coin: string) => void
}) => {
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
    onChoose(coin)
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
