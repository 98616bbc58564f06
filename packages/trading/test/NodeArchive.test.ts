import { assert, describe, it } from "@effect/vitest"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as NodeArchive from "@trigate/trading/TradingUpstream"
import { Pipeline } from "@trigate/upstream/Pipeline"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"

const sender = `0x${"ab".repeat(20)}`
const block = (number: string, gasPrice?: string) =>
  `"result":{"number":"${number}","hash":"0x0","transactions":[${
    gasPrice === undefined ? "" : `{"from":"0x${"22".repeat(20)}","gasPrice":"0x0"},{"from":"${sender}"${gasPrice}}`
  }]}`
const priced = `,"gasPrice":"0x5"`
const refused = `"error":{"code":-32602,"message":"invalid block height: 1"}`

/** What a node answers, by the call without its envelope. */
type Node = (call: string) => string | undefined

const nodeOf = (counts: { readonly latest: string; readonly old: string }): Node => (call) => {
  if (call === `eth_getBlockByNumber ["latest",true]`) return block("0x64", priced)
  if (call === `eth_getTransactionCount ["${sender}","latest"]`) return counts.latest
  return call === `eth_getTransactionCount ["${sender}","0x1"]` ? counts.old : undefined
}

/** What the log tells of one node, and the calls that it got. */
const checking = Effect.fnUntraced(function*(node: Node) {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel} ${String(message)}`)
  })
  const calls: Array<string> = []
  const transport = ScriptedTransport.make(({ body }) => {
    const [, id, method, params] = /^\{"jsonrpc":"2.0","id":(\d+),"method":"(\w+)","params":(.*)\}$/u.exec(body) ?? []
    const call = `${method} ${params}`
    calls.push(call)
    const answer = node(call)
    return answer === undefined
      ? ScriptedTransport.broken
      : ScriptedTransport.response(200, `{"jsonrpc":"2.0","id":${id},${answer}}`)
  })
  const targets = Upstream.targets(Upstream.make("trading-node", ["https://node.test/SECRET-KEY"]), "/evm")
  yield* Effect.flatMap(Pipeline, (pipeline) => NodeArchive.warn(pipeline, targets)).pipe(
    Effect.provide(Layer.merge(transport.layer, Logger.layer([logger])))
  )
  return { calls, lines }
})

describe("a node that is said to be an archive", () => {
  it.effect("is one where it counts fewer transactions at block 1 than at the latest", () =>
    Effect.gen(function*() {
      const { calls, lines } = yield* checking(nodeOf({ latest: `"result":"0x7"`, old: `"result":"0x0"` }))
      assert.deepStrictEqual(lines, [])
      assert.deepStrictEqual(calls, [
        `eth_getBlockByNumber ["latest",true]`,
        `eth_getTransactionCount ["${sender}","latest"]`,
        `eth_getTransactionCount ["${sender}","0x1"]`
      ])
    }))

  const warning = (finding: string) => [`Warn TRIGATE_TRADING_NODE_ARCHIVE is on, but trading-node#0 ${finding}`]
  const told: ReadonlyArray<readonly [what: string, node: Node, finding: string, calls: number]> = [
    [
      "answers the latest state",
      nodeOf({ latest: `"result":"0x7"`, old: `"result":"0x7"` }),
      "is not an archive node: it returns the latest state for block 1",
      3
    ],
    [
      "refuses an old block",
      nodeOf({ latest: `"result":"0x7"`, old: refused }),
      "is not an archive node: it refuses block 1",
      3
    ],
    ["is away", () => undefined, "is possibly not an archive node: it did not respond to the check", 1],
    [
      "has empty blocks",
      (call) => block(/"(0x\w+)"/u.exec(call)?.[1] ?? "0x64"),
      "is possibly not an archive node: the check found no transaction in its latest blocks",
      20
    ],
    [
      "has one block",
      () => block("0x1", priced),
      "is possibly not an archive node: the check found no transaction in its latest blocks",
      1
    ]
  ]
  for (const [what, node, finding, count] of told) {
    it.effect(`is told of where it ${what}, by its place and not by its URL`, () =>
      Effect.gen(function*() {
        const { calls, lines } = yield* checking(node)
        assert.deepStrictEqual(lines, warning(finding))
        assert.strictEqual(calls.length, count)
      }))
  }

  it.effect("is searched backwards for a transaction of an account", () =>
    Effect.gen(function*() {
      const { calls, lines } = yield* checking((call) => {
        if (call === `eth_getBlockByNumber ["latest",true]`) return block("0x64")
        if (call === `eth_getBlockByNumber ["0x63",true]`) return block("0x63", `,"gasPrice":"0x0"`)
        if (call === `eth_getBlockByNumber ["0x62",true]`) return block("0x62", "")
        return call.endsWith(`"latest"]`) ? `"result":"0x1"` : `"result":"0x0"`
      })
      assert.deepStrictEqual(lines, [])
      assert.deepStrictEqual(calls.slice(1, 4), [
        `eth_getBlockByNumber ["0x63",true]`,
        `eth_getBlockByNumber ["0x62",true]`,
        `eth_getTransactionCount ["${sender}","latest"]`
      ])
    }))
})
