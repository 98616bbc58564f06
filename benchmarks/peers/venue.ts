/** A venue that answers each query 80 ms later with the time, and tells at `/spent` what weight it was asked when. */
import * as http from "node:http"
import { listen } from "./http.ts"

const light = /"type":"(?:l2Book|allMids|clearinghouseState)"/u

const spent: Array<readonly [at: number, weight: number]> = []

const server = http.createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    response.setHeader("content-type", "application/json")
    if (request.url === "/spent") {
      response.end(JSON.stringify(spent))
      return
    }
    const at = Date.now()
    spent.push([at, light.test(Buffer.concat(chunks).toString("utf8")) ? 2 : 20])
    setTimeout(() => response.end(JSON.stringify({ time: at })), 80)
  })
})

listen(server)
