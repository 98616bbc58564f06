/** The same proxy written for speed: the request collected, the answer forwarded from undici's own events. */
import * as http from "node:http"
import { type Dispatcher, Pool } from "undici"
import { listen, relayed } from "./http.ts"

const pool = new Pool(process.argv[2] ?? "")

listen(http.createServer((request, response) => {
  const { headers, method = "GET", url = "/" } = request
  const chunks: Array<Buffer> = []
  let controller: Dispatcher.DispatchController | undefined
  response.on("close", () => {
    if (!response.writableFinished) controller?.abort(new Error("The caller left"))
  })
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    pool.dispatch({
      path: url,
      method,
      headers: { "content-type": headers["content-type"] ?? "application/json" },
      body: chunks.length === 1 ? chunks[0] ?? null : Buffer.concat(chunks)
    }, {
      onRequestStart(started) {
        controller = started
      },
      onResponseStart(_controller, statusCode, headers) {
        response.writeHead(statusCode, relayed(headers))
      },
      onResponseData(_controller, chunk) {
        // a caller that reads slowly slows the upstream down instead of filling the memory
        if (!response.write(chunk)) {
          controller?.pause()
          response.once("drain", () => controller?.resume())
        }
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        if (!response.headersSent) response.writeHead(502)
        response.end()
      }
    })
  })
}))
