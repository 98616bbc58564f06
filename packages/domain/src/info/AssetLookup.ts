/** Finds the asset number used in orders, from the venue's metadata. */
import * as Option from "effect/Option"
import { closestWord } from "../ClosestWord.ts"
import { UnknownAsset } from "../errors/ResourceError.ts"
import { outcomeCoins } from "./Market.ts"
import type { Meta, OutcomeMeta, PerpDex } from "./Market.ts"
import * as SpotLookup from "./SpotLookup.ts"
import type { SpotMeta } from "./SpotMeta.ts"

/** An asset that can be traded. */
export interface Asset {
  /**
   * The asset number: a perpetual's index, 10000 + a spot pair's index, 100000 + 10000 x dex + index for a perpetual of
   * a builder-deployed dex, or 100000000 + the number in an outcome's coin.
   */
  readonly id: number
  /** The venue's name of the asset: `BTC`, `PURR/USDC`, `@107`, `dex:COIN`, `#50`. */
  readonly coin: string
  /** Decimal places of an order size. */
  readonly szDecimals: number
  /** The market whose price steps apply. The sides of outcomes have those of spot pairs. */
  readonly market: "perp" | "spot"
}

const firstSpot = 10_000
const firstBuilderDex = 100_000
const idsPerDex = 10_000
const firstOutcome = 100_000_000

/** Returns whether a name identifies the side of an outcome: `#` and a number. */
export const isOutcome = (coin: string): boolean => coin.startsWith("#")

/** Returns whether a name identifies a spot pair: `BASE/QUOTE`, or `@` and an index. */
export const isSpot = (coin: string): boolean => coin.includes("/") || coin.startsWith("@")

/** Returns the builder-deployed dex in a perpetual's name; empty for the venue's own dex. */
export const parseDex = (coin: string): string => coin.slice(0, Math.max(0, coin.indexOf(":")))

/** Returns the error for an unlisted coin, with the most similar listed name. */
export const unknownAsset = (coin: string, listed: Iterable<string>): UnknownAsset => {
  const meant = closestWord(coin, listed)
  const hint = meant === undefined ? "" : `: did you mean ${JSON.stringify(meant)}?`
  return new UnknownAsset({ coin, detail: `Unknown coin ${JSON.stringify(coin)}${hint}` })
}

/** Returns the error for a coin of an unlisted dex, with the most similar dex; `undefined` if the dex is listed. */
export const unknownDex = (coin: string, dexes: ReadonlyArray<PerpDex | null>): UnknownAsset | undefined => {
  const dex = parseDex(coin)
  const listed = dexes.flatMap((each) => each?.name ?? [])
  if (dex === "" || listed.includes(dex)) return undefined
  const meant = closestWord(dex, listed)
  const hint = meant === undefined ? "" : `: did you mean ${JSON.stringify(`${meant}:${coin.slice(dex.length + 1)}`)}?`
  return new UnknownAsset({ coin, detail: `Unknown dex ${JSON.stringify(dex)} in coin ${JSON.stringify(coin)}${hint}` })
}

/** Returns a perpetual by its name, from the perpetuals of a dex and the list of dexes. */
export const perpetual = (
  { universe }: Meta,
  dexes: ReadonlyArray<PerpDex | null>,
  coin: string
): Option.Option<Asset> => {
  const dex = parseDex(coin)
  const dexIndex = dex === "" ? 0 : dexes.findIndex((listed) => listed?.name === dex)
  const index = universe.findIndex(({ name }) => name === coin)
  const found = universe[index]
  if (found === undefined || dexIndex < 0) return Option.none()
  const first = dexIndex === 0 ? 0 : firstBuilderDex + dexIndex * idsPerDex
  return Option.some({ id: first + index, coin, szDecimals: found.szDecimals, market: "perp" })
}

const pairNames = (meta: SpotMeta): ReadonlyArray<readonly [name: string, pair: SpotMeta["universe"][number]]> => {
  const lookup = SpotLookup.make(meta)
  return meta.universe.flatMap((pair) => {
    const { base, quote } = lookup.tokensOf(pair)
    const both = Option.all([base, quote])
    return [
      [pair.name, pair] as const,
      ...Option.match(both, {
        onNone: () => [],
        onSome: ([{ name: baseName }, { name: quoteName }]) => [[`${baseName}/${quoteName}`, pair] as const]
      })
    ]
  })
}

/** Returns all names under which {@link spot} finds a pair. */
export const spotNames = (meta: SpotMeta): ReadonlyArray<string> => pairNames(meta).map(([name]) => name)

/** Returns a spot pair by the venue's name, or by the names of its tokens (`HYPE/USDC`) if only one pair has them. */
export const spot = (meta: SpotMeta, coin: string): Option.Option<Asset> => {
  const found = new Set(pairNames(meta).filter(([name]) => name === coin).map(([, pair]) => pair))
  const exact = [...found].find(({ name }) => name === coin)
  const [pair] = exact === undefined ? found : [exact]
  if (pair === undefined || (exact === undefined && found.size > 1)) return Option.none()
  return Option.map(SpotLookup.make(meta).tokensOf(pair).base, ({ szDecimals }): Asset => ({
    id: firstSpot + pair.index,
    coin: pair.name,
    szDecimals,
    market: "spot"
  }))
}

/** Returns the side of a listed outcome by its coin. Its orders have whole sizes. */
export const outcome = ({ outcomes }: OutcomeMeta, coin: string): Option.Option<Asset> =>
  outcomes.some((listed) => outcomeCoins(listed).includes(coin))
    ? Option.some({ id: firstOutcome + Number(coin.slice(1)), coin, szDecimals: 0, market: "spot" })
    : Option.none()
