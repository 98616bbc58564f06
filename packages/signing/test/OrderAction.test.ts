import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Decimal from "@trigate/signing/Decimal"
import * as Result from "effect/Result"

const order = { asset: 1, side: "buy", priceInQuote: "1100.50", sizeInBase: "0.20" } as const
const cloid = "0x1E60610F0B3D420597C88C1FED2AD5EE"
const builder = "0xABCDEF7890123456789012345678901234567890"

describe("OrderAction", () => {
  it("writes the venue's members, decimals without needless zeros and hex in lower case", () => {
    const placed = OrderAction.place({
      orders: [
        { ...order, cloid },
        {
          ...order,
          side: "sell",
          reduceOnly: true,
          trigger: { kind: "stopLoss", priceInQuote: "01000", isMarket: true }
        }
      ],
      grouping: "normalTpsl",
      builderFee: { address: builder, feeInTenthsOfBp: 10 }
    })
    assert.strictEqual(
      JSON.stringify(Result.getOrThrow(placed)),
      `{"type":"order","orders":[` +
        `{"a":1,"b":true,"p":"1100.5","s":"0.2","r":false,"t":{"limit":{"tif":"Gtc"}},"c":"${cloid.toLowerCase()}"},` +
        `{"a":1,"b":false,"p":"1100.5","s":"0.2","r":true,` +
        `"t":{"trigger":{"isMarket":true,"triggerPx":"1000","tpsl":"sl"}}}` +
        `],"grouping":"normalTpsl","builder":{"b":"${builder.toLowerCase()}","f":10}}`
    )
  })

  it("rounds nothing unless it is asked to, and never up", () => {
    const placed = (cutTo?: OrderAction.Steps) => {
      const precise = { ...order, priceInQuote: "123456.789", sizeInBase: "0.123456789", cutTo }
      const [first] = Result.getOrThrow(OrderAction.place({ orders: [precise] })).orders
      return [first?.p, first?.s]
    }
    assert.deepStrictEqual(placed(), ["123456.789", "0.123456789"])
    assert.deepStrictEqual(placed({ szDecimals: 2, market: "perp" }), ["123456", "0.12"])
  })

  it("writes the fast flag of cancels behind them, where it is set, and ids of any size", () => {
    const text = (built: Result.Result<unknown, unknown>) => Json.stringify(Result.getOrThrow(built))
    const cancels = [{ asset: 1, orderId: 7 }, { asset: 2, orderId: 2n ** 64n - 1n }]
    const listed = `"cancels":[{"a":1,"o":7},{"a":2,"o":18446744073709551615}]`
    assert.strictEqual(text(OrderAction.cancel(cancels)), `{"type":"cancel",${listed}}`)
    assert.strictEqual(text(OrderAction.cancel(cancels, { fast: false })), `{"type":"cancel",${listed}}`)
    assert.strictEqual(text(OrderAction.cancel(cancels, { fast: true })), `{"type":"cancel",${listed},"f":true}`)
    assert.strictEqual(
      text(OrderAction.cancelByCloid([{ asset: 1, cloid }], { fast: true })),
      `{"type":"cancelByCloid","cancels":[{"asset":1,"cloid":"${cloid.toLowerCase()}"}],"f":true}`
    )
  })

  it("writes flags of modifications where they are set, and the rate of a priority fee", () => {
    const text = (built: Result.Result<unknown, unknown>) => Json.stringify(Result.getOrThrow(built))
    const plain = `{"a":1,"b":true,"p":"1100.5","s":"0.2","r":false,"t":{"limit":{"tif":"Ioc"}}}`
    const ioc = { ...order, timeInForce: "Ioc" } as const
    assert.strictEqual(
      text(OrderAction.modify({ order: 7, to: ioc }, { alwaysPlace: true })),
      `{"type":"modify","oid":7,"order":${plain},"a":true}`
    )
    assert.strictEqual(
      text(OrderAction.batchModify([{ order: 7, to: ioc }], { alwaysPlace: false })),
      `{"type":"batchModify","modifies":[{"oid":7,"order":${plain}}]}`
    )
    assert.strictEqual(
      text(OrderAction.place({ orders: [ioc], grouping: { priorityRate: 12_345 } })),
      `{"type":"order","orders":[${plain}],"grouping":{"p":12345}}`
    )
  })

  // TestNewTrailingStopAction of a Go client pins these bytes
  it("writes a trailing stop as the venue's web page does: four places of a percentage, and null without activation", () => {
    const text = (terms: OrderAction.TrailingStop) => JSON.stringify(Result.getOrThrow(OrderAction.trailingStop(terms)))
    assert.strictEqual(
      text({
        asset: 2,
        side: "sell",
        sizeInBase: "4.12",
        reduceOnly: true,
        distance: { percent: "1.5" },
        activationPriceInQuote: "250.50"
      }),
      `{"type":"trailingStop","asset":2,"isBuy":false,"sz":"4.12","reduceOnly":true,"retracement":{"pct":"1.5000%"},` +
        `"activationPx":"250.5"}`
    )
    assert.strictEqual(
      text({ asset: 0, side: "buy", sizeInBase: "0.1", distance: { inQuote: "10" } }),
      `{"type":"trailingStop","asset":0,"isBuy":true,"sz":"0.1","reduceOnly":false,"retracement":{"px":"10"},` +
        `"activationPx":null}`
    )
  })

  const stop = { asset: 1, side: "sell", sizeInBase: "1", distance: { percent: "1" } } as const
  const wrong: ReadonlyArray<
    readonly [path: string, built: Result.Result<unknown, { readonly path: ReadonlyArray<string | number> }>]
  > = [
    ["orders", OrderAction.place({ orders: [] })],
    ["orders.0.asset", OrderAction.place({ orders: [{ ...order, asset: 1.5 }] })],
    ["orders.1.priceInQuote", OrderAction.place({ orders: [order, { ...order, priceInQuote: "1e5" }] })],
    ["orders.0.priceInQuote", OrderAction.place({ orders: [{ ...order, priceInQuote: "0.0" }] })],
    ["orders.0.sizeInBase", OrderAction.place({ orders: [{ ...order, sizeInBase: "-1" }] })],
    [
      "orders.0.sizeInBase",
      OrderAction.place({ orders: [{ ...order, sizeInBase: "0.001", cutTo: { szDecimals: 2, market: "spot" } }] })
    ],
    ["orders.0.cloid", OrderAction.place({ orders: [{ ...order, cloid: "0x12" }] })],
    [
      "orders.0.trigger.priceInQuote",
      OrderAction.place({ orders: [{ ...order, trigger: { kind: "takeProfit", priceInQuote: "", isMarket: false } }] })
    ],
    [
      "builderFee.feeInTenthsOfBp",
      OrderAction.place({ orders: [order], builderFee: { address: builder, feeInTenthsOfBp: 1001 } })
    ],
    ["cancels.0.orderId", OrderAction.cancel([{ asset: 1, orderId: -1 }])],
    ["cancels.0.orderId", OrderAction.cancel([{ asset: 1, orderId: 2n ** 64n }])],
    ["cancels.0.cloid", OrderAction.cancelByCloid([{ asset: 1, cloid: "0x" }])],
    ["to.priceInQuote", OrderAction.modify({ order: 1, to: { ...order, priceInQuote: "x" } })],
    ["modifies.0.order", OrderAction.batchModify([{ order: "0x1", to: order }])],
    ["grouping.priorityRate", OrderAction.place({ orders: [order], grouping: { priorityRate: 0.5 } })],
    ["distance.percent", OrderAction.trailingStop({ ...stop, distance: { percent: "0.00001" } })],
    ["distance.inQuote", OrderAction.trailingStop({ ...stop, distance: { inQuote: "0" } })],
    ["sizeInBase", OrderAction.trailingStop({ ...stop, sizeInBase: "0" })],
    ["activationPriceInQuote", OrderAction.trailingStop({ ...stop, activationPriceInQuote: "1e5" })]
  ]
  for (const [path, built] of wrong) {
    it(`names the term that cannot be sent: ${path}`, () => {
      assert(Result.isFailure(built))
      assert.strictEqual(built.failure.path.join("."), path)
    })
  }
})

describe("Decimal.canonical", () => {
  const cases: ReadonlyArray<readonly [text: string, canonical: string | undefined]> = [
    ["1100.50", "1100.5"],
    ["1100.0", "1100"],
    ["1100.", "1100"],
    [".5", "0.5"],
    ["00123", "123"],
    ["-0.0", "0"],
    ["-1.10", "-1.1"],
    ["0", "0"],
    ["1e-7", "0.0000001"],
    ["1.25E+3", "1250"],
    ["1.2345e2", "123.45"],
    ["-5e-1", "-0.5"],
    ["", undefined],
    [".", undefined],
    ["1,5", undefined],
    ["1e9999", undefined],
    ["NaN", undefined],
    ["0x10", undefined]
  ]
  for (const [text, canonical] of cases) {
    it(`reads ${JSON.stringify(text)} as ${canonical ?? "nothing"}`, () => {
      assert.strictEqual(Decimal.canonical(text), canonical)
    })
  }
})
