/** An MCP client that starts `trigate mcp` places a paper order within the policy, and is refused beyond it. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { bundledProgram } from "@trigate/testing/Bundle"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "mcp-"))
const file = Path.join(folder, "policies.yaml")
Fs.writeFileSync(file, "policies:\n  - name: agent\n    accounts: \"*\"\n    orderNotional: 5000\n")

/** Starts the program with a client, whose person approves orders or not. The program ends with the scope. */
const connected = Effect.fnUntraced(function*(url: string, asked: Array<string>) {
  const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message)
    return { action: "accept", content: { approve: asked.length === 1 } }
  })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bundledProgram(), "mcp", "--gateway", url],
    env: { TRIGATE_PRIVATE_KEY: keys.trader.privateKey },
    stderr: "ignore"
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect(transport)),
    () => Effect.promise(() => client.close())
  )
  return client
})

describe("the MCP client of @modelcontextprotocol/sdk", () => {
  it.live("places an order within the policy, is asked above the threshold, and is refused beyond the policy", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({ TRIGATE_GUARD: file })
      const asked: Array<string> = []
      const client = yield* connected(url, asked)
      assert.include(
        client.getInstructions(),
        "serves a sandbox, with simulated funds and prices. Orders are signed by"
      )
      const call = (given: { readonly [parameter: string]: unknown }) =>
        Effect.map(Effect.promise(() => client.callTool({ name: "place_order", arguments: given })), (answer) => ({
          result: JsonParts.at(answer, "structuredContent", "result"),
          text: String(JsonParts.at(answer, "content", 0, "text"))
        }))
      const market = { coin: "BTC", side: "buy" }
      assert.match(String((yield* call({ ...market, size: "0.001" })).result), /is filled: 0\.001 at/u)
      assert.deepStrictEqual(asked, [])
      assert.match(String((yield* call({ ...market, size: "0.03" })).result), /is filled: 0\.03 at/u)
      assert.include(asked[0], "buys 0.03 BTC at the market price")
      assert.include((yield* call({ ...market, size: "0.03" })).text, "NotApproved")
      const refused = yield* call({ ...market, size: "1" })
      assert.include(refused.text, "PolicyViolation: The notional of the order is")
      assert.include(refused.text, "\"limit\":5000,\"unit\":\"USDC\"")
      assert.strictEqual(asked.length, 2)
    }))
})
