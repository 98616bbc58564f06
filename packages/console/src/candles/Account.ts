/** The open orders and fills of an account, to be marked in the chart. */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { Address } from "@trigate/domain/encoding/Hex"
import type { Fill, OpenOrder } from "@trigate/domain/info/Order"
import { trader } from "@trigate/domain/SandboxAccounts"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Gateway from "../Gateway.ts"
import * as Live from "../Live.ts"
import { place } from "../Place.ts"

/** Milliseconds between two queries, each of which costs API weight. */
const pollEvery = 10_000

/** The account's orders and fills in all coins. */
export const marked = signal<{ readonly orders: ReadonlyArray<OpenOrder>; readonly fills: ReadonlyArray<Fill> }>({
  orders: [],
  fills: []
})

/** The default account: the sandbox's trader in a sandbox, otherwise an empty string. */
export const byDefault = computed(() => Live.readiness.value?.sandbox === true ? trader.address : "")

/** The account in the page's URL, or the default account. It might not be an address, because it is not validated. */
export const account = computed(() => place.value.params["account"] ?? byDefault.value)

const isAddress = Schema.is(Address)

/** Polls the orders and fills of the account in the page's URL. Returns a function that stops the polling. */
export const follow = (): () => void => {
  const user = account.value
  marked.value = { orders: [], fills: [] }
  if (!isAddress(user)) return () => undefined
  const read = async (): Promise<void> => {
    if (document.hidden) return
    const outcome = await Gateway.run(
      Effect.all({ orders: Info.openOrders({ user }), fills: Info.userFills({ user }) })
    )
    if ("value" in outcome && account.value === user) marked.value = outcome.value
  }
  void read()
  const timer = setInterval(() => void read(), pollEvery)
  return () => clearInterval(timer)
}
