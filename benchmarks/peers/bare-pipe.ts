/** The proxy that one writes in an afternoon: `node:http` in, an undici `Pool` out, bodies piped, nothing read. */
import * as http from "node:http"
import { Pool } from "undici"
import { listen, relayed } from "./http.ts"

const pool = new Pool(process.argv[2] ?? "")

listen(http.createServer((request, response) => {
  const { headers, method = "GET", url = "/" } = request
  pool.request({
    path: url,
    method,
    headers: {
      "content-type": headers["content-type"] ?? "application/json",
      "content-length": headers["content-length"] ?? "0"
    },
    body: request
  }).then(
    ({ body, headers, statusCode }) => {
      body.on("error", () => response.destroy())
      // the caller left before the answer came
      if (response.destroyed) return body.destroy()
      response.writeHead(statusCode, relayed(headers))
      response.on("close", () => body.destroy())
      return body.pipe(response)
    },
    () => response.writeHead(502).end()
  )
}))
