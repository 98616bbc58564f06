/** Node's HTTP server with bounds on what it reads, and typed answers to what it cannot. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as ProblemDetails from "effect/http/ProblemDetails"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server that the platform layer is given
import * as Http from "node:http"

/** Bytes of request head: the head of a documented request is below one kilobyte. */
export const maxHeaderBytes = 16 * 1024

const refusals: { readonly [code: string]: readonly [status: number, title: string] } = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout"]
}

const codeOf = (error: Error): string => "code" in error && typeof error.code === "string" ? error.code : ""

const answerTo = (error: Error): string => {
  const [status, title] = refusals[codeOf(error)] ?? [400, "Bad Request"]
  const body = JSON.stringify({
    type: ProblemDetails.blankType,
    title,
    status,
    detail: "The request is not valid HTTP"
  })
  return `HTTP/1.1 ${status} ${title}\r\ncontent-type: ${ProblemDetails.contentType}\r\n` +
    `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`
}

const create = (): Http.Server => {
  const server = Http.createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 75_000
  })
  server.on("clientError", (error, socket) => {
    if (socket.writable) socket.end(answerTo(error))
    else socket.destroy()
  })
  return server
}

/** The HTTP server on an address; requests in flight have 20 seconds to finish when it closes. */
export const layer = (options: { readonly host: string; readonly port: number }) =>
  NodeHttpServer.layer(create, { host: options.host, port: options.port, gracefulShutdownTimeout: "20 seconds" })
