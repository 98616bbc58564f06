/** The names of the venue's testnet, which has other asset numbers than mainnet: its first perpetuals, tokens and HYPE. */
import type { SpotMeta, SpotToken } from "@trigate/domain/info/Market"
import type { CandleMarket } from "./Assets.ts"
import { hype, usdh } from "./Assets.ts"
import type { InfoState } from "./VenueState.ts"

/** The indexes of HYPE among the testnet's tokens, and of its pair with USDC. */
const testnetHype = { token: 1_105, pair: 1_035 }

/** The IDs of known tokens on testnet, by index, from its `spotMeta`. */
const tokenIds: ReadonlyMap<number, string> = new Map([
  [0, "0xeb62eee3685fc4c43992febcd9e75443"],
  [1, "0xc4bf3f870c0e9465323c0b6ed28096c2"],
  [testnetHype.token, "0x7317beb7cceed72ef0b346074cc8e7ab"]
])

/** The names of the testnet's first tokens after USDC and PURR. */
const tokenNames = ["TEST", "JPL ", "BREAD", "P", "KOGU", "TestPascal1", "KORILA"]

/** The index of KORILA, and the pair that trades it there. */
const korila = { token: 8, pair: "@8", szDecimals: 1, weiDecimals: 1 }

const renameToken = (token: SpotToken, index: number): SpotToken => ({
  ...token,
  index,
  name: tokenNames[index - 2] ?? token.name,
  tokenId: tokenIds.get(index) ?? token.tokenId,
  ...(index === korila.token ? { szDecimals: korila.szDecimals, weiDecimals: korila.weiDecimals } : {})
})

/** Makes the token of an index that mainnet's list does not have, or has for HYPE or USDH. */
const fillToken = (index: number): SpotToken => ({
  name: `TEST${index}`,
  szDecimals: 2,
  weiDecimals: 8,
  index,
  tokenId: `0x${index.toString(16).padStart(32, "0")}`,
  isCanonical: false,
  evmContract: null,
  fullName: null,
  deployerTradingFeeShare: "0.0"
})

const renamePairs = ({ tokens, universe }: SpotMeta): SpotMeta => {
  const known = new Map(tokens.map((token) => [token.index, token]))
  return {
    tokens: Array.from({ length: testnetHype.token + 1 }, (_, index) => {
      const source = index === testnetHype.token ? hype : index
      const token = index === hype || index === usdh ? undefined : known.get(source)
      return token === undefined ? fillToken(index) : renameToken(token, index)
    }),
    universe: universe.flatMap((pair) => {
      const [listedBase, quote] = pair.tokens
      const base = pair.name === korila.pair ? korila.token : listedBase
      if (base === usdh) return []
      const toTestnet = (token: number) => token === hype ? testnetHype.token : token
      const tokens: readonly [number, number] = [toTestnet(base), toTestnet(quote)]
      return base === hype
        ? [{ ...pair, tokens, name: `@${testnetHype.pair}`, index: testnetHype.pair }]
        : [{ ...pair, tokens }]
    })
  }
}

/** The first perpetuals of the testnet, whose asset numbers are those positions. */
const firstPerpetuals = ["SOL", "APT", "ATOM", "BTC", "ETH"]

/**
 * Prices that differ from mainnet's. The venue's Python examples for testnet place orders that should rest, at half of
 * these prices.
 */
const prices: ReadonlyMap<string, number> = new Map([["PURR/USDC", 1], [korila.pair, 24], ["OP", 2.4], ["test:ABC", 2]])

/** The testnet's names of coins that have others on mainnet. The coins of a dex without a name do not exist there. */
const renameCoin = (coin: string): string | undefined => {
  if (coin === `@107`) return `@${testnetHype.pair}`
  if (coin === "@230" || coin.startsWith("km:")) return undefined
  return coin === "xyz:XYZ100" ? "test:ABC" : coin.replace("xyz:", "test:")
}

/** Returns the testnet's tokens, pairs and perpetuals, made from mainnet's. */
export const toTestnet = ({ markets, spotMeta }: InfoState): InfoState => {
  const renamed = new Map<string, CandleMarket>()
  for (const [coin, market] of markets) {
    const name = renameCoin(coin)
    if (name === undefined) continue
    const price = prices.get(name)
    renamed.set(name, { ...market, coin: name, ...(price === undefined ? {} : { asset: name, price }) })
  }
  const first = firstPerpetuals.flatMap((coin) => {
    const market = renamed.get(coin)
    return market === undefined ? [] : [[coin, market] as const]
  })
  return { spotMeta: renamePairs(spotMeta), markets: new Map([...first, ...renamed]) }
}
