import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { LogRangeTooWide, QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { readLogRefusal } from "@trigate/domain/unstable/evm/EvmErrors"
import type { LogRefusal } from "@trigate/domain/unstable/evm/EvmErrors"

const asked = { blocks: 5000, alternatives: 1500 }

const gatewayError = (error: QuotaExceeded | LogRangeTooWide): EvmProtocol.RpcResponse => ({
  _tag: "Error",
  code: -32005,
  message: error.message,
  error: Json.of(EvmProtocol.errorObject(error))
})

describe("a node's refusal of logs", () => {
  const refusals: ReadonlyArray<
    readonly [message: string, reason: LogRefusal["reason"], limit?: number | undefined, code?: number]
  > = [
    ["query exceeds max block range 100", "blocks", 100],
    ["eth_getLogs is limited to a 1,000 blocks range", "blocks", 1000],
    ["block range too large", "blocks"],
    ["ranges over 2k blocks are not supported on freetier", "blocks", 2000, 35],
    ["range 5000 exceeds limit of 1000", "blocks", 1000],
    ["please limit the query to at most 1000 blocks", "blocks", 1000],
    ["Block range limit exceeded. Your IP may make 25 requests", "blocks", 25, -32005],
    ["Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.", "blocks", 10, -32600],
    ["requested too many blocks from 1 to 5000, maximum is set to 2048", "blocks", 2048],
    ["query exceeds max results 20000, retry with the range 1-2", "results"],
    ["query returned more than 10000 results", "results", undefined, -32005],
    ["Query returned more than 10000 results. Try with this block range [0x10, 0x1f].", "results", 16, -32005],
    [
      "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, " +
      "or you can request any block range with a cap of 10K logs in the response. This block range should work: [0x0, 0x3e7]",
      "results",
      1000
    ],
    ["Response is too big", "results", undefined, -32008],
    ["logs matched by query exceeds limit of 10000", "results"],
    ["log query timed out", "results"],
    ["query timeout exceeded", "results"],
    ["exceed max addresses or topics per search position", "alternatives"],
    ["1501 addresses specified in query, but only 1000 are allowed", "alternatives", 1000],
    ["query exceeds limit 1000", "unknown", 1000, -32005],
    ["query must be smaller than size 1024", "unknown", 1024],
    ["limit exceeded", "unknown", undefined, -32005],
    ["区块范围不能超过2000", "unknown", 2000],
    ["", "unknown"],
    ["header not found", "unknown"]
  ]
  for (const [message, reason, limit, code = -32602] of refusals) {
    it(`is of ${reason}: ${message}`, () => {
      assert.deepStrictEqual(readLogRefusal(EvmProtocol.error(code, message), asked), { reason, limit })
      // a query of one block, one address and one topic cannot be split
      assert.isUndefined(readLogRefusal(EvmProtocol.error(code, message), { blocks: 1, alternatives: 1 }))
    })
  }

  const others: ReadonlyArray<readonly [message: string, code?: number]> = [
    // of reth, geth and Nethermind: a smaller range fails too
    ["block range extends beyond current head block"],
    ["invalid block range params"],
    ["invalid block range"],
    ["One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found."],
    // the rate of the caller's requests
    ["daily request count exceeded, request rate limited", -32005],
    ["Too many requests, retry in 10s", -32090],
    ["over rate limit", -32016],
    ["project ID request rate exceeded", -32005],
    ["50/second request limit reached - reduce calls per second or upgrade your account at quicknode.com", -32007],
    ["Your app has exceeded its compute units per second capacity.", 429],
    ["monthly capacity limit exceeded", -32005],
    ["超出配额", 429],
    ["server is busy, try again later", -32000],
    ["too many requests: your IP is blocked for 60 s", -32000],
    // its access, and the method
    ["Unauthorized: invalid API key", -32000],
    ["access denied", -32001],
    ["the method eth_getLogs does not exist/is not available", -32601],
    ["method eth_getLogs not whitelisted", -32000]
  ]
  for (const [message, code = -32602] of others) {
    it(`is not seen in: ${message}`, () => {
      assert.isUndefined(readLogRefusal(EvmProtocol.error(code, message), asked))
    })
  }

  it("is seen in a gateway's own error only if a smaller query would be served", () => {
    const quota = new QuotaExceeded({ retryAfter: 1, detail: "No more than 100 blocks" })
    assert.isUndefined(readLogRefusal(gatewayError(quota), asked))
    const detail =
      "Logs of 5000 blocks would require more than 40 upstream requests: query at most 2000 blocks at a time"
    assert.deepStrictEqual(
      readLogRefusal(gatewayError(new LogRangeTooWide({ requested: 5000, served: 2000, detail })), asked),
      {
        reason: "blocks",
        limit: 2000
      }
    )
  })

  it("is a response of the node, and not an exhausted rate limit, whatever its code", () => {
    const judged = (method: string, message: string) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 7, error: { code: -32005, message } })
      return EvmProtocol.judge(7, method)(UpstreamResponse.plain("layer2", 200, body))._tag
    }
    for (const message of ["query exceeds limit 10000", "limit exceeded"]) {
      assert.deepStrictEqual([judged("eth_getLogs", message), judged("eth_call", message)], ["Answered", "Retryable"])
    }
    assert.strictEqual(judged("eth_getLogs", "daily request count exceeded"), "Retryable")
    assert.strictEqual(judged("trace_filter", "block range too large"), "Answered")
  })

  it("is not seen in an error with HTTP 401 or 403", () => {
    const forbidden = { ...EvmProtocol.error(-32000, "block range too large"), isForbidden: true } as const
    assert.isUndefined(readLogRefusal(forbidden, asked))
  })
})
