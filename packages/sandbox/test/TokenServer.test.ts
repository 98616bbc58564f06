import { assert, describe, it } from "@effect/vitest"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import type { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { tokens } from "@trigate/sandbox/SandboxExamples"
import * as Genesis from "@trigate/sandbox/SandboxState"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as TokenServer from "@trigate/sandbox/unstable/tokens/TokenServer"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { start } from "./venue.ts"

type Method = keyof typeof tokenRpcOperations

const python = { ...Genesis.tokenChain, dialect: "python" } as const

const ask = (method: Method, address: string, state: TokenServer.TokenState = Genesis.tokenChain) =>
  TokenServer.answerCall(TokenServer.makeView("trigate", state, start), method, { address })

const view = TokenServer.makeView("trigate", Genesis.tokenChain, start)

const Envelope = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))

const body = (answer: TokenServer.TokenAnswer) => TokenServer.rpc(answer, start, "7").text

const result = (method: Method, address: string, state?: TokenServer.TokenState) => {
  const answer = ask(method, address, state)
  return "result" in answer ? answer.result : answer.error
}

const raw = "0:d76767392e7035d84ba6f83960b9399f62430ebcd7850a1e2b043d2d826c2370"

describe("the params of a method", () => {
  it("are refused by name if the sandbox does not read them", () => {
    for (
      const method of ["getAddressInformation", "getAddressBalance", "getWalletInformation", "runGetMethod"] as const
    ) {
      const params = { address: tokens.wallet, method: "seqno", stack: [], seqno: 1 }
      const { address, seqno } = params
      const refused = TokenServer.answerCall(view, method, method === "runGetMethod" ? params : { address, seqno })
      assert.deepStrictEqual(refused, {
        dialect: "cpp",
        status: 422,
        error: `the sandbox does not support "seqno" of "${method}"`
      })
    }
    assert.strictEqual(ask("getAddressBalance", tokens.wallet).status, 200)
  })
})

describe("two families of servers", () => {
  it("print one contract in two ways, no digit lost", () => {
    const cpp = body(ask("getTokenData", tokens.onchain))
    assert.include(cpp, "\"total_supply\":\"1180591620717411303424123\"")
    assert.include(cpp, "\"@type\":\"ext.tokens.jettonMasterData\"")
    assert.include(cpp, `"address":"${tokens.onchain}"`)
    assert.include(cpp, "\"@extra\":\"1792000000.000:0:0.004\"")
    assert.notInclude(cpp, "jsonrpc")
    const number = body(ask("getTokenData", tokens.number))
    assert.include(number, "\"total_supply\":9007199254740993001,")
    assert.include(number, "\"id\":\"7\",\"jsonrpc\":\"2.0\"")
    assert.notInclude(number, "@")
    assert.notInclude(number, "admin_address")
  })

  it("refuse in their own words", () => {
    const envelope = (answer: TokenServer.TokenAnswer): Readonly<Record<string, unknown>> => ({
      status: TokenServer.rpc(answer, start, "7").status,
      ...Schema.decodeUnknownSync(Envelope)(body(answer))
    })
    const cpp = { ok: false, "@extra": "1792000000.000:0:0.004" }
    const py = { ok: false, id: "7", jsonrpc: "2.0" }
    assert.deepStrictEqual(envelope(ask("getTokenData", tokens.wallet)), {
      ...cpp,
      status: 409,
      code: 409,
      error: "Smart contract is not Jetton or NFT"
    })
    assert.deepStrictEqual(envelope(ask("getConsensusBlock", tokens.wallet)), {
      ...cpp,
      status: 404,
      code: 404,
      error: "Not Found: the sandbox does not support getConsensusBlock"
    })
    assert.deepStrictEqual(envelope(ask("getConsensusBlock", tokens.wallet, python)), {
      ...py,
      status: 422,
      code: 422,
      error: "Unknown method: the sandbox does not support getConsensusBlock"
    })
    assert.deepStrictEqual(envelope(ask("packAddress", tokens.invalid)), {
      ...cpp,
      status: 422,
      code: 422,
      error: "failed to parse address"
    })
    assert.deepStrictEqual(envelope(ask("packAddress", tokens.invalid, python)), {
      ...py,
      status: 416,
      code: 416,
      error: "Incorrect address"
    })
  })

  it("run the get methods of wallets that take no code, and tell a missing one from one without an answer", () => {
    const run = (address: string, method: unknown) => {
      const params = { address, method, stack: [] }
      const answer = TokenServer.answerCall(view, "runGetMethod", params)
      return "result" in answer ? answer.result : [answer.status, answer.error]
    }
    const ran = (exit_code: number, gas_used: number, stack: ReadonlyArray<unknown> = []) => ({
      "@type": "smc.runResult",
      gas_used,
      stack,
      exit_code
    })
    assert.deepStrictEqual(run(tokens.admin, "seqno"), ran(0, 549, [["num", "0x29"]]))
    assert.deepStrictEqual(run(tokens.admin, 85_143), ran(0, 549, [["num", "0x29"]]))
    assert.deepStrictEqual(run(tokens.wallet, "get_subwallet_id"), ran(0, 549, [["num", "0x29a9a317"]]))
    assert.deepStrictEqual(run(tokens.nftItem, "seqno"), ran(11, 308))
    assert.deepStrictEqual(run(`0:${"12".repeat(32)}`, "seqno"), ran(-13, 0))
    for (
      const [address, method] of [[tokens.wallet, "get_public_key"], [tokens.nftItem, "get_nft_data"], [
        tokens.wallet,
        1
      ]]
    ) {
      assert.deepStrictEqual(run(String(address), method), [
        500,
        `the sandbox has no code for this contract, so it cannot serve ${method}`
      ])
    }
  })

  it("write addresses as recorded", () => {
    const url = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
    const plain = "EQDXZ2c5LnA12Eum+DlguTmfYkMOvNeFCh4rBD0tgmwjcFI+"
    // a plain wallet that nothing is deployed at, so that the family is the default one
    const empty = (state: TokenServer.TokenState): TokenServer.TokenState => ({ ...state, contracts: new Map() })
    assert.strictEqual(result("packAddress", raw, empty(python)), plain)
    assert.strictEqual(result("packAddress", raw), url)
    assert.strictEqual(result("unpackAddress", url, empty(python)), raw)
    assert.strictEqual(result("unpackAddress", url), raw.toUpperCase())
    assert.strictEqual(result("unpackAddress", raw.toUpperCase(), empty(python)), raw.toUpperCase())
    assert.deepStrictEqual(result("detectAddress", url), {
      raw_form: raw,
      bounceable: { b64: plain, b64url: url },
      non_bounceable: {
        b64: "UQDXZ2c5LnA12Eum+DlguTmfYkMOvNeFCh4rBD0tgmwjcA/7",
        b64url: "UQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcA_7"
      },
      given_type: "friendly_bounceable",
      test_only: false
    })
    assert.strictEqual(
      result("packAddress", "UQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcA_7"),
      "UQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcA_7"
    )
  })
})

describe("accounts", () => {
  it("have a balance and a state, whether anything is there or not", () => {
    assert.strictEqual(result("getAddressBalance", tokens.wallet), "14020735")
    assert.strictEqual(result("getAddressState", tokens.wallet), "active")
    const nobody = TonAddress.format({ workchain: 0, hash: "0".repeat(64) })
    assert.strictEqual(result("getAddressBalance", nobody), "0")
    assert.strictEqual(result("getAddressState", nobody), "uninitialized")
    assert.deepInclude(result("getWalletInformation", tokens.wallet), {
      wallet: true,
      balance: "14020735",
      account_state: "active",
      wallet_type: "wallet v4 r2",
      seqno: 2
    })
    assert.deepInclude(result("getWalletInformation", nobody), { account_state: "uninitialized", balance: "0" })
  })

  it("stand in a masterchain block that moves with the clock", () => {
    const at = (now: number) =>
      TokenServer.answerCall(TokenServer.makeView("trigate", Genesis.tokenChain, now), "getMasterchainInfo", {})
    assert.deepStrictEqual(at(start), at(start + 1))
    assert.notDeepEqual(at(start), at(start + 5_000))
  })

  it("the examples are valid addresses, and the invalid one is not", () => {
    for (const [name, address] of Object.entries(tokens)) {
      assert.strictEqual(Result.isSuccess(TonAddress.parse(address)), name !== "invalid", name)
    }
  })
})

describe("TokenControls", () => {
  it.effect("deploys a jetton with its document, and takes it away", () =>
    Effect.gen(function*() {
      const { tokens: controls } = yield* SandboxState
      const chain = yield* TokenChain
      const address = TonAddress.format({ workchain: -1, hash: "1".repeat(64) })
      yield* controls.putContract(`-1:${"1".repeat(64)}`, {
        kind: "jetton_master",
        supply: 2n ** 120n,
        mintable: false,
        content: { type: "offchain", data: "https://example.invalid/new.json" }
      }, "python")
      const before = yield* chain.getTokenData({ address })
      assert.deepStrictEqual([before.metadata, before.totalSupply], ["unresolved", (2n ** 120n).toString()])
      yield* controls.putDocument("https://example.invalid/new.json", { name: "New", symbol: "N", decimals: 2 })
      const { decimals, metadata, name } = yield* chain.getTokenData({ address })
      assert.deepStrictEqual({ decimals, metadata, name }, { decimals: 2, metadata: "offchain", name: "New" })
      yield* controls.removeContract(address)
      assert.strictEqual((yield* Effect.flip(chain.getTokenData({ address })))._tag, "TokenNotFound")
      assert.strictEqual((yield* Effect.flip(controls.removeContract(tokens.invalid)))._tag, "InvalidAddress")
    }).pipe(Effect.provide(Sandbox.layer())))
})
