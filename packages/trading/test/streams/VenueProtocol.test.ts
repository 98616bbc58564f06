import { assert, describe, it } from "@effect/vitest"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import fixtures from "../fixtures/venueFrames.json" with { type: "json" }

const user = "0x31ca8395cf837de08b24da3f660e77761dfb974b"

const normalised = (value: unknown): Subscription.Normalised => Result.getOrThrow(Subscriptions.read(value))

describe("a subscription", () => {
  // as the venue acknowledged them
  for (
    const [request, key] of [
      [
        { type: "l2Book", coin: "BTC", fast: true },
        `{"type":"l2Book","coin":"BTC","nSigFigs":null,"mantissa":null,"fast":true}`
      ],
      [
        { fast: null, mantissa: null, nSigFigs: 5, coin: "BTC", type: "l2Book" },
        `{"type":"l2Book","coin":"BTC","nSigFigs":5,"mantissa":null,"fast":false}`
      ],
      [{ type: "userFills", user }, `{"type":"userFills","user":"${user}","aggregateByTime":false}`],
      [
        { type: "userFills", user: user.toUpperCase().replace("0X", "0x"), aggregateByTime: true },
        `{"type":"userFills","user":"${user}","aggregateByTime":true}`
      ],
      [{ type: "candle", interval: "1d", coin: "HYPE" }, `{"type":"candle","coin":"HYPE","interval":"1d"}`],
      [{ type: "allMids" }, `{"type":"allMids","dex":""}`],
      [{ type: "allMids", dex: null }, `{"type":"allMids","dex":""}`],
      [{ type: "allMids", later: null }, `{"type":"allMids","dex":""}`],
      [{ type: "spotState", user }, `{"type":"spotState","user":"${user}","ignorePortfolioMargin":false}`],
      [
        { type: "spotState", user, isPortfolioMargin: null },
        `{"type":"spotState","user":"${user}","ignorePortfolioMargin":false}`
      ],
      [
        { type: "spotState", user, isPortfolioMargin: false },
        `{"type":"spotState","user":"${user}","isPortfolioMargin":false}`
      ]
    ] as const
  ) {
    it(`has its defaults filled in: ${JSON.stringify(request)}`, () => {
      assert.strictEqual(normalised(request).key, key)
    })
  }

  for (
    const [request, why] of [
      [{ type: "webData2", user }, "unknown type"],
      [{ type: "explorerBlock" }, "unknown type"],
      ["BTC", "unknown type"],
      [{ type: "bbo" }, "invalid"],
      [{ type: "bbo", coin: ["BTC"] }, "invalid"],
      [{ type: "bbo", coin: "" }, "invalid"],
      [{ type: "candle", coin: "BTC", interval: "2m" }, "invalid"],
      [{ type: "l2Book", coin: "BTC", nSigFigs: 6 }, "invalid"],
      [{ type: "l2Book", coin: "BTC", nSigFigs: 4, mantissa: 2 }, "invalid"],
      [{ type: "userFills", user: "0x0" }, "invalid"],
      [{ type: "trades", coin: "BTC", later: 1 }, "unknown member later"],
      [{ type: "trades", coin: "BTC", toString: 1 }, "unknown member toString"],
      [
        { type: "spotState", user, isPortfolioMargin: true, ignorePortfolioMargin: false },
        "unknown member ignorePortfolioMargin"
      ]
    ] as const
  ) {
    it(`is none: ${JSON.stringify(request)}`, () => {
      assert.deepStrictEqual(Subscriptions.read(request), Result.fail(why))
    })
  }

  it("shares a route with those whose frames look alike, and with no other", () => {
    const routeOf = (value: unknown) => VenueProtocol.makeTopic(normalised(value)).route
    assert.strictEqual(
      routeOf({ type: "l2Book", coin: "BTC", fast: true }),
      routeOf({ type: "l2Book", coin: "BTC", nSigFigs: 2 })
    )
    assert.strictEqual(
      routeOf({ type: "orderUpdates", user }),
      routeOf({ type: "orderUpdates", user: user.replace("3", "4") })
    )
    assert.notStrictEqual(
      routeOf({ type: "userFills", user }),
      routeOf({ type: "userFills", user: user.replace("3", "4") })
    )
    const all = Subscriptions.table.map((declaration) =>
      routeOf({ type: declaration.name, ...Object(declaration.example) })
    )
    assert.strictEqual(new Set(all).size, all.length)
  })
})

describe("a frame of the venue", () => {
  const known = new Map(
    Subscriptions.table.flatMap((declaration) =>
      Subscription.channelNames(declaration).map((channel) => [channel, declaration] as const)
    )
  )
  for (const [place, { channel, edited, kind, text }] of fixtures.entries()) {
    const declaration = known.get(channel)
    if (declaration === undefined) continue
    it(`belongs to a subscription and decodes: ${channel} ${place}`, () => {
      const data = Subscription.valueAt(JSON.parse(text), "data")
      const read = VenueProtocol.protocol.read(text)
      assert.strictEqual(read.kind, "data")
      // its values are not those of one frame of the venue
      if (kind === "composite" || kind === "test-fixture" || edited !== undefined) return
      const items = declaration.isList === true ? Array.isArray(data) ? data : [] : [data]
      const decode = Schema.decodeUnknownSync(declaration.item)
      for (const item of items) decode(item)
    })
  }

  for (
    const [text, incoming] of [
      [`{"channel":"pong"}`, { kind: "noise" }],
      ["Websocket connection established.", { kind: "noise" }],
      [`{"channel":"futureChannel","data":{}}`, { kind: "unknown", channel: "futureChannel" }],
      [`{"channel":"l2Book","data":{"coin":"@107","time":1,"levels":[[],[]]}}`, { kind: "data", route: "l2Book @107" }],
      [`{"channel":"activeSpotAssetCtx","data":{"coin":"@107"}}`, { kind: "data", route: "activeAssetCtx @107" }],
      [`{"channel":"candle","data":{"s":"BTC","i":"1m","t":60000}}`, {
        kind: "data",
        route: "candle BTC 1m",
        state: "60000"
      }],
      [`{"channel":"userFills","data":{"user":"0xAB","fills":[]}}`, { kind: "data", route: "userFills 0xab" }],
      [`{"channel":"user","data":{"fills":[]}}`, { kind: "data", route: "userEvents" }],
      [
        `{"channel":"subscriptionResponse","data":{"method":"subscribe","subscription":{"type":"l2Book","coin":"HYPE","nSigFigs":null,"mantissa":null}}}`,
        { kind: "subscribed", route: "l2Book HYPE" }
      ],
      [
        `{"channel":"subscriptionResponse","data":{"method":"subscribe","subscription":{"type":"spotState","user":"${user}","ignorePortfolioMargin":false,"later":[]}}}`,
        { kind: "subscribed", route: `spotState ${user}` }
      ],
      [
        `{"channel":"error","data":"Already subscribed: {\\"type\\":\\"bbo\\",\\"coin\\":\\"SOL\\"}"}`,
        { kind: "subscribed", route: "bbo SOL" }
      ],
      [
        `{"channel":"error","data":"Already unsubscribed: {\\"type\\":\\"trades\\",\\"coin\\":\\"ETH\\"}"}`,
        { kind: "unsubscribed", route: "trades ETH" }
      ],
      [
        `{"channel":"error","data":"Cannot track more than 12 total users."}`,
        { kind: "limit", of: "users", limit: 12, message: "Cannot track more than 12 total users." }
      ],
      [
        `{"channel":"error","data":"Error parsing JSON into valid websocket request: {\\"method\\":\\"subscribe\\",\\"subscription\\":{\\"type\\":\\"bbo\\",\\"coin\\":\\"X\\"}}"}`,
        {
          kind: "refused",
          route: "bbo X",
          message:
            `Error parsing JSON into valid websocket request: {"method":"subscribe","subscription":{"type":"bbo","coin":"X"}}`
        }
      ]
    ] as const
  ) {
    it(`is read: ${text.slice(0, 60)}`, () => {
      assert.deepStrictEqual(VenueProtocol.protocol.read(text), incoming)
    })
  }
})

describe("rows", () => {
  const codecOf = (value: unknown) => {
    const { rows } = VenueProtocol.makeTopic(normalised(value))
    return rows ?? assert.fail("no rows")
  }

  it("of fills keep every character, and are written as a snapshot, as a stream and as a refill", () => {
    const codec = codecOf({ type: "userFills", user })
    const row = `{"coin":"BTC","px":"1.0","time":5,"oid":7,"tid":123456789012345678,"new":[1.50,{"a":"]"}]}`
    const read = codec.read(
      `{"channel":"userFills","data":{"fills":[${row}, ${row.replace("123", "9")}],"isSnapshot":true}}`
    )
    assert.deepStrictEqual(read, {
      isSnapshot: true,
      rows: [
        { id: "7 123456789012345678", text: row, time: 5 },
        { id: "7 9456789012345678", text: row.replace("123", "9"), time: 5 }
      ]
    })
    const rows = read?.rows.slice(0, 1) ?? []
    assert.strictEqual(
      codec.write(rows, "snapshot"),
      `{"channel":"userFills","data":{"isSnapshot":true,"user":"${user}","fills":[${row}]}}`
    )
    assert.strictEqual(
      codec.write(rows, "stream"),
      `{"channel":"userFills","data":{"user":"${user}","fills":[${row}]}}`
    )
  })

  it("of orders say in a member beside the data that they were refilled", () => {
    const codec = codecOf({ type: "orderUpdates", user })
    const row = `{"order":{"oid":7,"sz":"0.0"},"status":"filled","statusTimestamp":9}`
    const { rows } = codec.read(`{"channel":"orderUpdates","data":[${row}]}`) ?? assert.fail("no rows")
    assert.deepStrictEqual(rows, [{ id: "7 filled 9 0.0", text: row, time: 9 }])
    assert.strictEqual(codec.write(rows, "refill"), `{"channel":"orderUpdates","data":[${row}],"isRefill":true}`)
  })

  it("of user events are its fills; other events have none", () => {
    const codec = codecOf({ type: "userEvents", user })
    assert.isUndefined(codec.read(`{"channel":"user","data":{"funding":{}}}`))
    assert.strictEqual(codec.write([], "stream"), `{"channel":"user","data":{"fills":[]}}`)
  })
})
