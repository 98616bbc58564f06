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
      response.writeHead(statusCode, relayed(headers))
      body.on("error", () => response.destroy())
      response.on("close", () => body.destroy())
      return body.pipe(response)
    },
    () => response.writeHead(502).end()
  )
}))
