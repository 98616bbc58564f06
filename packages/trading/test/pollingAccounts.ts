/** Accounts that poll books, prices and their own state through one gateway, on a simulated clock and at a venue that counts. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"

/** Who polls, how often, and for how long. */
export interface Options {
  readonly accounts: number
  /** Milliseconds between two polls of an account. */
  readonly every: number
  /** Seconds before anything is counted, and seconds that are. */
  readonly warmUp: number
  readonly seconds: number
  /** Whether each account comes from an address of its own. */
  readonly apart?: boolean
  readonly staleWhenLimited?: Duration.Input
}

export const twenty = { accounts: 20, every: 300, warmUp: 60, seconds: 120 } as const

const weights: { readonly [type: string]: number } = { allMids: 2, clearinghouseState: 2, l2Book: 2 }

const address = (index: number): string => `0x${index.toString(16).padStart(40, "0")}`

/** The queries of an account, in the order in which it asks. */
export const queriesOf = (account: number) => [
  ...["BTC", "ETH", "SOL", "HYPE"].map((coin) => ({ type: "l2Book", coin })),
  { type: "allMids" },
  { type: "clearinghouseState", user: address(account) }
]

/** When the venue wrote a response, which has nothing but that. */
export const timeIn = (text: string): number => Number(/^\{"time":(?<time>[0-9]+)\}$/u.exec(text)?.groups?.["time"])

/** The smallest number that a part of some numbers does not exceed. */
const percentile = (numbers: ReadonlyArray<number>, part: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.ceil(numbers.length * part) - 1] ?? 0

/** The most weight in any 60 seconds. */
export const mostInAMinute = (spent: ReadonlyArray<readonly [at: number, weight: number]>): number => {
  let most = 0
  let sum = 0
  let first = 0
  for (const [at, weight] of spent) {
    sum += weight
    for (let oldest = spent[first]; oldest !== undefined && at - oldest[0] >= 60_000; oldest = spent[first]) {
      sum -= oldest[1]
      first += 1
    }
    most = Math.max(most, sum)
  }
  return most
}

/** Lets them poll. Ages are in milliseconds, as the body tells when the venue wrote it. */
export const run = Effect.fnUntraced(function*(options: Options) {
  const { accounts, every, seconds, staleWhenLimited, warmUp } = options
  let now = 0
  const spent: Array<readonly [at: number, weight: number]> = []
  const transport = ScriptedTransport.make(({ body }) => {
    const type = /"type":"(?<type>\w+)"/u.exec(body)?.groups?.["type"] ?? ""
    spent.push([now, weights[type] ?? 20])
    return ScriptedTransport.response(200, `{"time":${now}}`)
  })
  const calls = yield* Effect.forEach(
    Array.from({ length: accounts }, (_, account) => account),
    (account) =>
      Effect.forEach(queriesOf(account), (query) => InfoProtocol.parseCall(Json.write(query), "gateway", true))
  )
  const ages: { readonly market: Array<number>; readonly account: Array<number> } = { market: [], account: [] }
  const refused: Array<string> = []
  const polling = Effect.gen(function*() {
    const { relay } = yield* Info
    const begin = yield* Clock.currentTimeMillis
    for (let step = 0; step * every < (warmUp + seconds) * 1000; step++) {
      for (const [account, queries] of calls.entries()) {
        now = begin + step * every + Math.floor(account * every / accounts)
        yield* TestClock.setTime(now)
        const caller: Caller = { id: `address:192.0.2.${options.apart === true ? account : 0}`, scope: {}, quota: {} }
        for (const call of queries) {
          const asked = yield* Effect.exit(Effect.provideService(relay(call), CurrentCaller, caller))
          if (now - begin < warmUp * 1000) continue
          if (asked._tag === "Failure") {
            refused.push(Cause.pretty(asked.cause).split("\n")[0] ?? "")
            continue
          }
          const time = timeIn(asked.value.text)
          const list = InfoProtocol.queryType(call) === "clearinghouseState" ? ages.account : ages.market
          list.push(now - time)
        }
      }
    }
  })
  const limited = staleWhenLimited === undefined ? {} : { staleWhenLimited }
  yield* polling.pipe(Effect.provide(
    TradingUpstream.layerInfo({ api: ["https://api.test"] }, limited).pipe(
      Layer.provide(Pipeline.layer()),
      Layer.provide(transport.transport)
    )
  ))
  const summary = (list: ReadonlyArray<number>) => ({
    reads: list.length,
    p99: percentile(list, 0.99),
    oldest: percentile(list, 1)
  })
  return {
    refused,
    requests: spent.length,
    weight: mostInAMinute(spent),
    market: summary(ages.market),
    account: summary(ages.account)
  }
})
