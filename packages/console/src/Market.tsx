/** Live mid prices of some of the sandbox's coins, from the stream. */
import { signal } from "@preact/signals"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { useEffect } from "preact/hooks"
import * as Events from "./Events.ts"
import { linkTo } from "./Place.ts"
import { Spark } from "./Spark.tsx"

const coins = ["BTC", "ETH", "HYPE", "SOL"]

/** Maximum number of stored prices of a coin. */
const most = 120

const prices = signal<{ readonly [coin: string]: ReadonlyArray<number> }>({})

const decodeFrame = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({
    channel: Schema.Literal("allMids"),
    data: Schema.Struct({ mids: Schema.Record(Schema.String, Schema.String) })
  }))
)

const add = (text: string): void => {
  const frame = decodeFrame(text)
  if (Option.isNone(frame)) return
  const { mids } = frame.value.data
  prices.value = Object.fromEntries(coins.flatMap((coin) => {
    const mid = mids[coin]
    return mid === undefined ? [] : [[coin, [...prices.value[coin] ?? [], Number(mid)].slice(-most)]]
  }))
}

/** The card with the live mid prices. */
export const Market = () => {
  useEffect(() => Events.follow([{ type: "allMids" }], add).stop, [])
  const shown = Object.entries(prices.value)
  return (
    <section class="card" aria-labelledby="market-title">
      <h2 id="market-title">The market now</h2>
      {shown.length === 0 ? <p class="muted">Waiting for the first prices …</p> : (
        <dl class="tiles market">
          {shown.map(([coin, values]) => {
            const bottom = Math.min(...values)
            const height = Math.max(...values) - bottom
            return (
              <div key={coin}>
                <dt>
                  <a href={linkTo("candles", { coin, interval: "15m" })}>{coin}</a>
                </dt>
                <dd>
                  <strong>{values.at(-1)}</strong>
                  <Spark
                    label={`Mid price of ${coin}`}
                    top={height === 0 ? 1 : height}
                    values={values.map((value) => value - bottom)}
                  />
                </dd>
              </div>
            )
          })}
        </dl>
      )}
      <p>
        <a href={linkTo("trade")}>Place a paper order</a>{" "}
        <span class="muted">
          The sandbox checks the order's signature, and fills or refuses the order. Its messages are the venue's.
        </span>
      </p>
    </section>
  )
}
