/** The upstream behind the traced gateway: a venue under `/exchange` and `/info`, an EVM node elsewhere. */
import * as http from "node:http"

const hour = 3_600_000
const storageWord = `0x${"0".repeat(63)}1`

const candle = (coin: string, t: number) => ({
  t,
  T: t + hour - 1,
  s: coin,
  i: "1h",
  o: "1.0",
  c: "1.5",
  h: "2.0",
  l: "0.5",
  v: "10.0",
  n: 3
})

/** A bar outside of every window. */
const outside = JSON.stringify([candle("BTC", 0)])

/** The name of a coin that has a bar in each hour, so that the gateway stores its closed bars. */
export const everTraded = "ETH"

const candlesIn = (body: string): string => {
  const { end = "0", start = "0" } = new RegExp(
    `"coin":"${everTraded}".*"startTime":(?<start>\\d+).*"endTime":(?<end>\\d+)`,
    "u"
  ).exec(body)?.groups ?? {}
  if (start === "0") return outside
  const [first, last] = [start, end].map((time) => Math.floor(Number(time) / hour))
  const count = (last ?? 0) - (first ?? 0) + 1
  return JSON.stringify(Array.from({ length: count }, (_, index) => candle(everTraded, ((first ?? 0) + index) * hour)))
}

const idOf = (body: string): string => /"id":(?<id>[0-9]+)/u.exec(body)?.groups?.["id"] ?? "null"

const answerTo = (path: string, body: string): string => {
  if (path === "/exchange" && body.includes("\"orders\"")) {
    return "{\"status\":\"ok\",\"response\":{\"type\":\"order\",\"data\":{\"statuses\":[{\"resting\":{\"oid\":1}}]}}}"
  }
  if (path === "/exchange") return "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}"
  if (path === "/info") return candlesIn(body)
  return `{"jsonrpc":"2.0","id":${idOf(body)},"result":"${body.includes("eth_gasPrice") ? "0x3b9aca00" : storageWord}"}`
}

/** Listens on a free port of the loopback and counts what it answers. */
export const listen = async () => {
  let answered = 0
  const server = http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      answered++
      response.writeHead(200, { "content-type": "application/json" })
      response.end(answerTo(request.url ?? "/", Buffer.concat(chunks).toString("utf8")))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The upstream has no port")
  return {
    url: `http://127.0.0.1:${address.port}`,
    answered: () => answered,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
