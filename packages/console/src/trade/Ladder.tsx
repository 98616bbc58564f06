/** The depth ladder and the tape of trades of the coin in the page's URL. */
import { signal } from "@preact/signals"
import type { BookLevel } from "@trigate/domain/info/Market"
import * as Table from "../Table.tsx"
import { market } from "./Markets.ts"
import { pick } from "./Ticket.tsx"

/** Returns the number of levels on each side that fit into the window; in a narrow one, beside the ticket. */
const countLevels = (): number => innerHeight >= 992 && innerWidth > 1088 ? 14 : innerHeight >= 736 ? 9 : 7

const depth = signal(countLevels())
addEventListener("resize", () => {
  depth.value = countLevels()
})

const places = (text: string): number => text.split(".")[1]?.length ?? 0

/** Returns the most decimals of some numbers. */
const mostPlaces = (texts: ReadonlyArray<string>): number =>
  Math.max(0, ...texts.map((text) => places(text.replace(/\.0$/u, ""))))

/** Adds the total size up to each level. */
const cumulate = (levels: ReadonlyArray<BookLevel>) => {
  let total = 0
  return levels.slice(0, depth.value).map(({ px, sz }) => ({ px, sz, total: total += Number(sz) }))
}

/** Formats a size with the decimals of the other sizes; from a million on in millions. */
const formatSize = (value: number, decimals: number): string =>
  value >= 1e6 ? Table.size(value) : Table.fixed(value, decimals)

type Level = ReturnType<typeof cumulate>[number]

const LevelRow = ({ level: { px, sz, total }, decimals, most, side }: {
  readonly level: Level
  readonly side: "bid" | "ask"
  readonly most: number
  readonly decimals: { readonly price: number; readonly size: number }
}) => (
  <tr class={side} style={{ backgroundSize: `${Math.round(total / most * 100)}% 100%` }} onClick={() => pick(px)}>
    <th scope="row">{Table.fixed(Number(px), decimals.price)}</th>
    <td>{formatSize(Number(sz), decimals.size)}</td>
    <td>{formatSize(total, decimals.size)}</td>
  </tr>
)

/** The card with the depth ladder. A click on a price puts it into the ticket. */
export const Ladder = () => {
  const { levels: [bids, asks] } = market.value
  const below = cumulate(bids)
  const above = cumulate(asks)
  const most = Math.max(below.at(-1)?.total ?? 0, above.at(-1)?.total ?? 0)
  const all = [...below, ...above]
  const decimals = {
    price: mostPlaces(all.map(({ px }) => px)),
    size: mostPlaces(all.map(({ sz }) => sz))
  }
  const [bid] = below
  const [ask] = above
  const spread = bid === undefined || ask === undefined ? undefined : Number(ask.px) - Number(bid.px)
  const row = (side: "bid" | "ask") => (level: Level) => (
    <LevelRow key={level.px} level={level} side={side} most={most} decimals={decimals} />
  )
  return (
    <section class="card ladder" aria-labelledby="book-title">
      <h2 id="book-title">Order book</h2>
      {all.length === 0 ? <p class="muted">The book appears here with its first frame.</p> : (
        <table>
          <thead>
            <tr>
              <th scope="col">Price</th>
              <th scope="col">Size</th>
              <th scope="col">Total</th>
            </tr>
          </thead>
          <tbody>{above.toReversed().map(row("ask"))}</tbody>
          <tbody class="spread">
            <tr>
              <th scope="row">
                {spread === undefined ? "–" : Table.fixed(spread, decimals.price)}
              </th>
              <td colSpan={2}>
                spread{" "}
                {spread === undefined || ask === undefined ? "" : `${Table.fixed(spread / Number(ask.px) * 100, 3)} %`}
              </td>
            </tr>
          </tbody>
          <tbody>{below.map(row("bid"))}</tbody>
        </table>
      )}
    </section>
  )
}

/** Number of trades in the tape. */
const tapeLength = 24

/** The card with the tape: the newest trades. */
export const Tape = () => {
  const trades = market.value.trades.slice(0, tapeLength)
  const decimals = mostPlaces(trades.map(({ sz }) => sz))
  return (
    <section class="card tape" aria-labelledby="tape-title">
      <h2 id="tape-title">Trades</h2>
      {trades.length === 0 ?
        <p class="muted">Each trade appears here as it happens.</p> :
        (
          <div class="scroll" tabIndex={0} role="region" aria-label="Trades, table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Price</th>
                  <th scope="col">Size</th>
                  <th scope="col">Time (UTC)</th>
                </tr>
              </thead>
              <tbody>
                {trades.map(({ px, side, sz, tid, time }) => (
                  <tr key={`${tid} ${time}`}>
                    <th scope="row" class={side === "B" ? "good" : "bad"}>{Table.decimal(px)}</th>
                    <td>{formatSize(Number(sz), decimals)}</td>
                    <td>{Table.clock(time).slice(0, 8)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
    </section>
  )
}
