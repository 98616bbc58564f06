/** Accounts that poll a gateway over HTTP, each in a loop of its own, and what their venue saw of it. */
import * as Schema from "effect/Schema"
import * as http from "node:http"
import { mostInAMinute, queriesOf, timeIn } from "../../packages/trading/test/pollingAccounts.ts"
import { pause } from "./processes.ts"

export interface Options {
  readonly accounts: number
  /** Milliseconds between two polls of an account. */
  readonly every: number
  /** Seconds before anything is counted, and seconds that are. */
  readonly warmUp: number
  readonly seconds: number
}

const decodeSpent = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Array(Schema.Tuple([Schema.Finite, Schema.Finite])))
)

const agent = new http.Agent({ keepAlive: true })

const ask = (
  url: string,
  body?: string
): Promise<{ readonly status: number; readonly age: number; readonly text: string }> =>
  new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { agent, method: body === undefined ? "GET" : "POST", headers: { "content-type": "application/json" } },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            age: Number(response.headers.age ?? 0),
            text: Buffer.concat(chunks).toString("utf8")
          }))
      }
    )
    request.on("error", reject)
    request.end(body)
  })

/** Lets them poll. `stale` has the milliseconds since the venue wrote each response, `ages` what its `Age` says. */
export const poll = async (gateway: string, venue: string, { accounts, every, seconds, warmUp }: Options) => {
  const begin = performance.now()
  const from = Date.now() + warmUp * 1000
  const end = begin + (warmUp + seconds) * 1000
  const statuses = new Map<number, number>()
  const market: Array<readonly [stale: number, age: number]> = []
  const account: typeof market = []
  const loop = async (index: number) => {
    await pause(index * every / accounts)
    for (let next = performance.now(); next < end; next += every) {
      await pause(Math.max(0, next - performance.now()))
      for (const query of queriesOf(index)) {
        const { age, status, text } = await ask(`${gateway}/info`, JSON.stringify(query))
        if (Date.now() < from) continue
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status !== 200) continue
        const list = "user" in query ? account : market
        list.push([Date.now() - timeIn(text), age])
      }
    }
  }
  await Promise.all(Array.from({ length: accounts }, (_, index) => loop(index)))
  const spent = decodeSpent((await ask(`${venue}/spent`)).text)
  return { statuses, market, account, weight: mostInAMinute(spent), requests: spent.length }
}
