/** The coins of the venue, with their names and prices. */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { make as makeLookup, type SpotMeta } from "@trigate/domain/info/Market"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Gateway from "../Gateway.ts"

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
