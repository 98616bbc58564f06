/** The scenarios of a sandbox: what each does, step by step, and the figure at its end. */
import type { Connection } from "@trigate/client/Connection"
import * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import * as Sandbox from "@trigate/client/Sandbox"
import { millisBetween } from "@trigate/domain/encoding/Encoding"
import { Fill } from "@trigate/domain/info/Account"
import { type SandboxFaults, trader } from "@trigate/domain/unstable/Sandbox"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { fillKey } from "../account/AccountState.tsx"
import { loadNewest } from "../candles/Bars.ts"
import * as Gateway from "../Gateway.ts"
import * as Table from "../Table.tsx"
import * as Orders from "./Orders.ts"
import type { Progress, Scenario } from "./Scenarios.tsx"

/** A scenario cannot continue; the message states why. */
class Stopped extends Data.TaggedError("Stopped")<{ readonly message: string }> {}

const stop = (message: string) => Effect.fail(new Stopped({ message }))

/** The functions with which a scenario shows its progress and changes the faults of the venue. */
interface Stage {
  readonly change: (changed: Partial<Progress>) => void
  readonly say: (step: string) => void
  readonly end: (text: string, meaning: string) => void
  readonly setFaults: (faults: Partial<SandboxFaults>) => Promise<void>
}

const market = (size: string): Orders.Terms => ({
  coin: "ETH",
  side: "buy",
  type: "market",
  size,
  price: "",
  timeInForce: "Ioc",
  isReduceOnly: false
})

const bots = Effect.fnUntraced(function*({ change, end, say }: Stage) {
  say("Bots start on one IP address. Each reads metadata, prices and five books: ten queries, weight 92.")
  let isOver = false
  for (let count = 10; count <= 100; count += 10) {
    const { bots, queries, requests, weight, weightPerMinute, weightWithout } = yield* Sandbox.startBots({
      bots: count
    })
    if (!isOver && weightWithout > weightPerMinute) {
      isOver = true
      say(
        `${count} bots: without a gateway the address is over its limit of ${
          Table.count(weightPerMinute)
        } a minute, and the venue refuses all of them.`
      )
    }
    change({
      bars: [
        { name: `${bots} bots without a gateway`, value: weightWithout, most: 9200 },
        { name: `${bots} bots through Trigate`, value: weight, most: 9200 }
      ]
    })
    if (count === 100) {
      say(`${Table.count(queries)} queries became ${Table.count(requests)} requests to the venue.`)
      end(
        `${Table.count(weightWithout)} → ${Table.count(weight)}`,
        "weight at the venue: equal queries share one request, and its response is cached."
      )
    }
    yield* Effect.sleep(250)
  }
})

const lostReply = Effect.fnUntraced(function*({ end, say, setFaults }: Stage) {
  const { faults } = yield* Sandbox.status()
  yield* Effect.promise(() => setFaults({ lostReplies: 1 }))
  say("The venue will execute the next action, and its reply will be lost.")
  say("Buy 0.05 ETH at the market, with a client order ID …")
  const began = Gateway.elapsed()
  const record = yield* Effect.promise(() =>
    Orders.submit(market("0.05"), () => {
      say("No reply: the outcome is unknown. A bot that sends another order now may buy twice.")
      say("The gateway asks the venue for the order by its client order ID …")
      return setFaults({ lostReplies: faults.lostReplies })
    })
  )
  const [entry] = record?.settled?.entries ?? []
  if (entry?._tag !== "Filled") return yield* stop(`The order is ${record?.state ?? "unknown"}`)
  say(`Settled: order ${entry.oid} is filled, ${entry.totalSz} at ${Table.decimal(entry.avgPx)}.`)
  end(
    `${Table.fixed(millisBetween(began, Gateway.elapsed()) / 1000, 1)} s`,
    "from the lost reply to the known outcome: one order, one fill."
  )
})

const mistake = Effect.fnUntraced(function*({ end, say }: Stage) {
  const wrong = Orders.network() === "mainnet" ? "testnet" : "mainnet"
  say(`An order for 0.05 ETH is signed for ${wrong}, and sent to ${Orders.network()}.`)
  const { id } = yield* Info.asset("ETH")
  const order = { asset: id, side: "buy", priceInQuote: "1500", sizeInBase: "0.05" } as const
  const body = yield* Orders.signed((builder, options) => builder.placeOrders({ orders: [order] }, options), wrong)
  const refusal = yield* Effect.flip(Exchange.submit(body)).pipe(
    Effect.catch(() => stop("The venue accepted the order"))
  )
  say(`The venue refuses it: ${refusal.message}`)
  const [took, { diagnosis }] = yield* Effect.timed(Exchange.inspect(body, trader.address))
  const [first] = diagnosis.mistakes
  say(`The inspector: ${Table.plain(diagnosis.detail)}`)
  end(
    `${diagnosis.mistakes.length} ${diagnosis.mistakes.length === 1 ? "mistake" : "mistakes"} named`,
    `in ${Table.duration(Duration.toSeconds(took))}, ${
      first === undefined ? "without a correction" : `with the value to sign: ${first.expected ?? "see the inspector"}`
    }.`
  )
})

const FillsFrame = Schema.fromJsonString(Schema.Struct({
  channel: Schema.Literal("userFills"),
  data: Schema.Struct({ fills: Schema.Array(Fill), isSnapshot: Schema.optionalKey(Schema.Boolean) })
}))
const decodeFills = Schema.decodeUnknownOption(FillsFrame)

/** The length of the outage, in milliseconds. */
const outage = 2000

const orders = 3

/** Checks every tenth of a second, at most 300 times, until a condition is true. */
const until = (isTrue: () => boolean) => Effect.repeat(Effect.sleep(100), { times: 300, while: () => !isTrue() })

const socket = Effect.fnUntraced(function*({ end, say }: Stage) {
  let isReady = false
  let received: ReadonlyArray<string> = []
  const stream = Gateway.follow([{ type: "userFills", user: trader.address }], (text) => {
    const frame = decodeFills(text)
    if (Option.isNone(frame)) return
    isReady = true
    const { fills, isSnapshot } = frame.value.data
    if (isSnapshot !== true) received = [...received, ...fills.map(fillKey)]
  })
  yield* Effect.addFinalizer(() => Effect.sync(stream.stop))
  const fillKeys = Effect.map(Info.userFills({ user: trader.address }), (fills) => fills.map(fillKey))
  say("A program follows the account's fills through the gateway.")
  yield* until(() => isReady)
  const before = new Set(yield* fillKeys)
  const began = Gateway.elapsed()
  yield* Sandbox.cutSockets({ downFor: outage })
  say(`The venue's WebSocket is cut for ${outage / 1000} s. The program stays connected, and hears nothing.`)
  for (let count = 0; count < orders; count++) yield* Orders.send(market("0.01"))
  say(`Meanwhile ${orders} orders are filled.`)
  const made = (yield* fillKeys).filter((key) => !before.has(key))
  const arrived = () => made.filter((key) => received.includes(key)).length
  yield* until(() => arrived() === made.length)
  const seconds = millisBetween(began, Gateway.elapsed()) / 1000
  const doubled = received.length - new Set(received).size
  say("The gateway has reconnected, read the missed fills, and sent them as one continuous stream.")
  yield* Effect.promise(Orders.readAgain)
  end(
    `${arrived()} of ${made.length} fills`,
    `arrived ${Table.fixed(seconds, 1)} s after the cut: ${made.length - arrived()} lost, ${doubled} sent twice.`
  )
}, Effect.scoped)

const decodePayments = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  delta: Schema.Struct({ coin: Schema.String, usdc: Schema.String })
})))

const hour = 3_600_000

const jump = Effect.fnUntraced(function*({ end, say }: Stage) {
  const user = trader.address
  const { assetPositions } = yield* Info.clearinghouseState({ user })
  if (!assetPositions.some(({ position }) => position.coin === "ETH")) {
    yield* Orders.send(market("0.05"))
    say("The account buys 0.05 ETH, so that it holds a position.")
  }
  const { time } = yield* Sandbox.status()
  const before = Number((yield* Info.allMids({}))["ETH"])
  yield* Sandbox.advance({ advance: hour })
  say("The venue's clock jumps an hour: the price path fills orders, and the account pays or receives funding.")
  yield* Effect.promise(() => Promise.all([loadNewest(), Orders.readAgain()]))
  const after = Number((yield* Info.allMids({}))["ETH"])
  const payments = yield* decodePayments(yield* Info.raw({ type: "userFunding", user, startTime: time }))
  const paid = payments.reduce((sum, { delta }) => sum + Number(delta.usdc), 0)
  say(
    `ETH moved from ${Table.decimal(String(before))} to ${Table.decimal(String(after))} (${
      Table.signed((after / before - 1) * 100)
    } %).`
  )
  say("A test does the same with one request, so a day of trading takes a second.")
  end(
    `${Table.signed(paid, 4)} USDC`,
    `of funding in ${payments.length} ${payments.length === 1 ? "payment" : "payments"} for the hour.`
  )
})

/** The scenarios by name. */
export const stories: {
  readonly [Name in Scenario]: (stage: Stage) => Effect.Effect<void, { readonly message: string }, Connection>
} = {
  "100 bots on one address": bots,
  "Lose the next reply": lostReply,
  "A mistake in a signature": mistake,
  "Kill the venue's socket": socket,
  "Jump an hour": jump
}
