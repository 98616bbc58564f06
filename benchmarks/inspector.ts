/** The processor time of one inspection of bodies that no likely mistake explains, so that the whole budget is spent. */
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import { plan } from "./harness/plan.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const nonce = 1_795_230_000_123
const somebody = "0x0123456789abcdef0123456789abcdef01234567"
const expected = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"

const signatureOf = (digit: number) => ({ r: `0x${"1".repeat(62)}${digit}`, s: `0x${"2".repeat(63)}`, v: 27 })

const order = (index: number) => ({
  a: index,
  b: index % 2 === 0,
  p: "1100.5",
  s: "0.25",
  r: false,
  t: index % 2 === 0
    ? { limit: { tif: "Gtc" } }
    : { trigger: { isMarket: true, triggerPx: "1095.5", tpsl: "sl" } },
  c: `0x${index.toString(16).padStart(32, "0")}`
})

const orders = (count: number) => ({
  type: "order",
  orders: Array.from({ length: count }, (_, index) => order(index)),
  grouping: "na",
  builder: { b: somebody, f: 10 }
})

const transfer = {
  type: "sendAsset",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  destination: somebody,
  sourceDex: "",
  destinationDex: "spot",
  token: "PURR:0xc1fb593aeffbeb02f85e0308e9956a90",
  amount: "1.5",
  fromSubAccount: "",
  nonce
}

const wrapped = (action: object, signatures: number) => ({
  type: "multiSig",
  signatureChainId: "0x66eee",
  signatures: Array.from({ length: signatures }, (_, index) => signatureOf(index)),
  payload: { multiSigUser: somebody, outerSigner: somebody, action }
})

const actions: { readonly [name: string]: object } = {
  "an order": orders(1),
  "two orders": orders(2),
  "ten orders": orders(10),
  "sixty orders": orders(60),
  "two hundred orders": orders(200),
  "a price with a trailing zero": { ...orders(2), orders: [{ ...order(0), p: "1100.50" }, order(1)] },
  "a transfer": transfer,
  "a multi-sig of an order": wrapped(orders(1), 2),
  "a multi-sig of a transfer by ten": wrapped(transfer, 10)
}

const inspections = 5

await run("inspector", () =>
  Effect.runPromise(
    Effect.gen(function*() {
      const inspector = Inspector.make(mainnet, { signers: [somebody] }, yield* Secp256k1.Secp256k1)
      const millisOf = Effect.fnUntraced(function*(action: object, expiresAfter: number | undefined) {
        const body = {
          action,
          nonce,
          signature: signatureOf(0),
          ...(expiresAfter === undefined ? {} : { expiresAfter })
        }
        const bytes = Utf8.encode(JSON.stringify(body))
        const before = process.cpuUsage()
        for (let each = 0; each < inspections; each++) {
          const { diagnosis } = yield* inspector.inspect(bytes, expected)
          if (diagnosis.verdict !== "unexplained") throw new Error(`The body is explained: ${diagnosis.detail}`)
        }
        const { system, user } = process.cpuUsage(before)
        return (user + system) / 1000 / inspections
      })
      const found: Array<Row> = []
      for (const [beside, action] of Object.entries(actions)) {
        const values: Array<number> = []
        for (let round = 0; round <= plan.rounds; round++) {
          const millis = yield* millisOf(action, "payload" in action ? undefined : nonce + 60_000)
          // the first one warms up
          if (round > 0) values.push(millis)
        }
        const value = median(values)
        const aim = { aim: "<= 100 ms", met: value <= 100 }
        found.push({ title: "one inspection, processor time", beside, unit: "ms", value, values, ...aim })
      }
      return { rows: found }
    }).pipe(Effect.provide(Secp256k1.layer))
  ))
