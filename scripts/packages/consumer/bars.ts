/** Reads bars, over undici and over Effect's fetch client. */
import { InfoUpstream } from "@trigate/trading"
import { Console, Effect } from "effect"

const options = { url: process.argv[2] ?? "http://localhost:8080" }

const program = InfoUpstream.Info.use(({ candleSnapshot }) =>
  candleSnapshot({ coin: "BTC", interval: "1d", startTime: 0 })
).pipe(Effect.flatMap(({ candles }) => Console.log(candles.length > 0 ? "bars" : "none")))

await Effect.runPromise(Effect.provide(program, InfoUpstream.layerUndici(options)))
await Effect.runPromise(Effect.provide(program, InfoUpstream.layerFetch(options)))
