/** The coins that the page suggests. */
import { signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import * as Gateway from "./Gateway.ts"

/** The names of the coins; empty until they are loaded. */
export const coins = signal<ReadonlyArray<string>>([])

/** Loads the coins that have a price, except spot pairs whose only name is an index. */
export const loadCoins = async (): Promise<void> => {
  const outcome = await Gateway.run(Info.allMids({}))
  if ("value" in outcome) coins.value = Object.keys(outcome.value).filter((coin) => !coin.startsWith("@"))
}
