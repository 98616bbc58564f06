import { assert, describe, it, layer } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { gateway } from "@trigate/testing/Gateway"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as Http from "node:http"
import * as path from "node:path"
import type { Ended, Surroundings } from "./run.ts"
import { epoch, fileWith, folder, run, start } from "./run.ts"

class Url extends Context.Service<Url, string>()("test/Url") {}

const sandbox = Layer.effect(
  Url,
  Effect.andThen(TestClock.setTime(epoch), Effect.map(gateway({}), ({ url }) => url))
)

const { cosigner, leader, multiSigUser, stranger, thirdCosigner, trader, validator } = keys

/** Every key that any test here gives to a command, in the spellings that could leak. */
const secrets = Object.values(keys).map(({ privateKey }) => privateKey.slice(2))

const withoutKeys = (ended: Ended): Ended => {
  const text = `${ended.stdout}${ended.stderr}`.toLowerCase()
  for (const secret of secrets) assert.notInclude(text, secret)
  return ended
}

const trigate = (args: ReadonlyArray<string>, surroundings: Surroundings = {}) =>
  Effect.flatMap(Url, (url) =>
    Effect.map(
      run(args, { ...surroundings, environment: { TRIGATE_GATEWAY_URL: url, ...surroundings.environment } }),
      withoutKeys
    ))

const as = ({ privateKey }: { readonly privateKey: string }): Surroundings => ({
  environment: { TRIGATE_PRIVATE_KEY: privateKey }
})

/** Each action needs a nonce of its own, and the nonce is the time. */
const tick = TestClock.adjust("1 second")

layer(sandbox)("commands that sign", (it) => {
  it.effect("delegate: says what, for which network, by whom and where to, then sends it", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* trigate(["delegate", validator.address, "1.5"], as(trader)), {
        code: 0,
        stdout: `venue   accepted\nsigner  ${trader.address}\nnonce   1767323045000\n`,
        stderr:
          `On mainnet, ${trader.address} delegates 1.5 HYPE (150000000 wei) to the validator ${validator.address}, ` +
          `nonce 1767323045000.\nThe action is sent to ${yield* Url}: the sandbox, with simulated funds.\n`
      })
      yield* tick
      const back = yield* trigate(["undelegate", validator.address, "0.00000001"], as(trader))
      assert.strictEqual(back.code, 0)
      assert.include(back.stderr, `undelegates 0.00000001 HYPE (1 wei) from the validator ${validator.address}, `)
    }))

  it.effect("big-blocks: as JSON, with a key from a file, from standard input, from a variable of another name", () =>
    Effect.gen(function*() {
      const file = yield* fileWith(`${trader.privateKey}\n`)
      yield* tick
      const { code, stdout } = yield* trigate(["big-blocks", "on", "--json", "--key-file", file])
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(JSON.parse(stdout), {
        status: "ok",
        response: { type: "default" },
        entries: [{ _tag: "Done" }],
        nonce: 1_767_323_047_000,
        signer: trader.address
      })
      yield* tick
      const piped = yield* trigate(["big-blocks", "off", "--key-file", "-"], { stdin: trader.privateKey.slice(2) })
      assert.include(piped.stderr, "chooses small blocks")
      assert.strictEqual(piped.code, 0)
      yield* tick
      const named = yield* trigate(["big-blocks", "off", "--key-env", "MY_KEY"], {
        environment: { MY_KEY: trader.privateKey }
      })
      assert.strictEqual(named.code, 0)
    }))

  it.effect("--dry-run prints the body that inspect reads, and sends nothing", () =>
    Effect.gen(function*() {
      const dry = yield* trigate(["delegate", validator.address, "2", "--dry-run", "--gateway", "http://127.0.0.1:1"], {
        ...as(trader)
      })
      assert.strictEqual(dry.code, 0)
      assert.match(dry.stderr, /^On mainnet, 0x[0-9a-f]{40} delegates 2 HYPE \(200000000 wei\) [^\n]*\n$/u)
      const seen = yield* trigate(["inspect", "--json", "-"], { stdin: dry.stdout })
      assert.include(seen.stdout, `"signer": "${trader.address}"`)
    }))

  it.effect("reads no key from a file that others can read too", () =>
    Effect.gen(function*() {
      const file = yield* fileWith(trader.privateKey)
      for (const mode of [0o640, 0o604, 0o620, 0o602]) {
        fs.chmodSync(file, mode)
        const ended = yield* trigate(["big-blocks", "on", "--dry-run", "--key-file", file])
        const line = `trigate: Other users can read ${file}; restrict it to its owner: chmod 600 ${file}\n`
        assert.deepStrictEqual(ended, { code: 2, stdout: "", stderr: line }, mode.toString(8))
      }
      fs.chmodSync(file, 0o400)
      assert.strictEqual((yield* trigate(["big-blocks", "on", "--dry-run", "--key-file", file])).code, 0)
    }))

  it.effect("has no key: says where one is looked for", () =>
    Effect.gen(function*() {
      const told = (args: string, line: string, surroundings?: Surroundings) =>
        Effect.map(trigate(`big-blocks on ${args}`.trim().split(" "), surroundings), (ended) =>
          assert.deepStrictEqual(ended, { code: 2, stdout: "", stderr: `trigate: ${line}\n` }))
      const otherwise = "or name another variable with --key-env or a file with --key-file"
      yield* told("", `No private key: set TRIGATE_PRIVATE_KEY, ${otherwise}`)
      yield* told("--key-env MY_KEY", `No private key: set MY_KEY, ${otherwise}`)
      yield* told("--key-file /nowhere/key", "/nowhere/key cannot be read")
      // nobody is asked for it
      yield* told("--gateway http://127.0.0.1:1", `No private key: set TRIGATE_PRIVATE_KEY, ${otherwise}`)
      const noKey = "Not a private key: 32 bytes in hex, from 1 to the group order minus 1"
      const file = yield* fileWith("my key")
      yield* told(`--key-file ${file}`, `${file}: ${noKey}`)
      yield* told("--key-file -", `Standard input: ${noKey}`, { stdin: `${trader.privateKey} ${trader.privateKey}` })
      yield* told("", "TRIGATE_PRIVATE_KEY is empty: set it to a private key", {
        environment: { TRIGATE_PRIVATE_KEY: " " }
      })
      yield* told("--key-env A --key-file b", "--key-env and --key-file are mutually exclusive; omit one")
      yield* told("", "TRIGATE_PRIVATE_KEY: Not a private key: 32 bytes in hex, from 1 to the group order minus 1", {
        environment: { TRIGATE_PRIVATE_KEY: `${trader.privateKey}0` }
      })
    }))

  it.effect("is refused: by the gateway's network before anything is signed, by the venue after", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* trigate(["big-blocks", "on", "--network", "testnet"], as(trader)), {
        code: 2,
        stdout: "",
        stderr:
          "trigate: The gateway expects signatures for mainnet, and this signature would be for testnet; nothing was sent. " +
          "Name the network with --network, or another gateway with --gateway\n"
      })
      yield* tick
      const poor = yield* trigate(["delegate", validator.address, "5000"], as(trader))
      assert.strictEqual(poor.code, 6)
      assert.include(poor.stderr, "\ntrigate: The venue rejected the action (Refused): Insufficient stake\n")
      yield* tick
      const unknown = yield* trigate(["big-blocks", "on"], as(stranger))
      assert.strictEqual(unknown.code, 6)
      assert.include(unknown.stderr, "trigate: The venue rejected the action (UnknownSigner): ")
    }))

  it.effect("multisig: proposes, collects approvals, submits; each machine has its own key only", () =>
    Effect.gen(function*() {
      yield* tick
      const shared = yield* folder
      const at = (name: string) => path.join(shared, name)
      const terms = [
        "--account",
        multiSigUser.address,
        "--leader",
        leader.address,
        "--threshold",
        "2",
        ...[leader, cosigner, thirdCosigner].flatMap(({ address }) => ["--cosigner", address])
      ]
      const propose = `multisig propose delegate ${validator.address} 1.5`.split(" ")
      const proposed = yield* trigate([...propose, ...terms, "--save", at("proposal.json")])
      const summary = proposed.stderr.split("\n").slice(0, 4).join("\n")
      assert.include(summary, `the multi-sig account ${multiSigUser.address} delegates 1.5 HYPE (wei 150000000)`)
      assert.deepStrictEqual(proposed, {
        code: 0,
        stdout: "",
        stderr: `${summary}\ntrigate: written to ${at("proposal.json")}\n`
      })

      const first = yield* trigate(["multisig", "approve", at("proposal.json")], as(cosigner))
      assert.strictEqual(first.code, 0)
      assert.strictEqual(first.stderr, `${summary}\ntrigate: approved by ${cosigner.address}\n`)
      fs.writeFileSync(at("1.json"), first.stdout)
      const foreign = yield* trigate(["multisig", "approve", at("proposal.json")], as(stranger))
      assert.strictEqual(foreign.code, 3)
      assert.include(
        foreign.stderr,
        `trigate: ${stranger.address} is not an authorized user of the multi-sig account\n`
      )

      const early = yield* trigate(["multisig", "submit", at("proposal.json"), at("1.json")], as(leader))
      assert.deepStrictEqual(early, {
        code: 3,
        stdout: "",
        stderr: "trigate: 1 of 2 required co-signers have approved\n"
      })

      const second = ["multisig", "approve", at("proposal.json"), "--save", at("2.json")]
      assert.strictEqual((yield* trigate(second, as(thirdCosigner))).code, 0)
      const again = yield* trigate(second, as(thirdCosigner))
      assert.strictEqual(again.code, 2)
      assert.include(again.stderr, `${at("2.json")} exists or cannot be written; nothing was changed`)

      const submit = ["multisig", "submit", at("proposal.json"), at("2.json"), at("1.json")]
      const wrong = yield* trigate(submit, as(cosigner))
      assert.strictEqual(wrong.code, 3)
      const sent = yield* trigate(submit, as(leader))
      assert.strictEqual(sent.code, 0)
      assert.strictEqual(
        sent.stderr,
        `${summary}\nThe action is sent to ${yield* Url}: the sandbox, with simulated funds.\n`
      )
      assert.match(sent.stdout, /^venue {3}accepted\nsigner {2}0x15d34aaf54267db7d7c367839aaf71a00a2c6a65\nnonce/u)
      const twice = yield* trigate(submit, as(leader))
      assert.strictEqual(twice.code, 3)
      assert.include(twice.stderr, "was sent before, and its outcome is known\n")
    }))

  it.effect("multisig propose: the other actions, and what is no action", () =>
    Effect.gen(function*() {
      const terms = ["--account", multiSigUser.address, "--leader", leader.address, "--nonce", "1767323045000"]
      const propose = (args: string, stdin = "") =>
        trigate(["multisig", "propose", ...args.split(" "), ...terms], { stdin })
      const actionOf = ({ stdout }: Ended): unknown =>
        JSON.parse((JSON.parse(stdout) as { readonly action: string }).action)
      assert.deepStrictEqual(actionOf(yield* propose(`undelegate ${validator.address} 0.00000001`)), {
        type: "tokenDelegate",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Mainnet",
        validator: validator.address,
        wei: 1,
        isUndelegate: true,
        nonce: 1_767_323_045_000
      })
      assert.deepStrictEqual(actionOf(yield* propose("big-blocks off")), {
        type: "evmUserModify",
        usingBigBlocks: false
      })
      const jail = { type: "CSignerAction", jailSelf: null }
      assert.deepStrictEqual(actionOf(yield* propose("action -", JSON.stringify(jail))), jail)
      assert.deepStrictEqual(yield* propose("action -", "[]"), {
        code: 2,
        stdout: "",
        stderr: "trigate: Standard input does not contain an action: expected a JSON object with a type\n"
      })
      const altered = yield* trigate(["multisig", "approve", "-"], { ...as(cosigner), stdin: "{}" })
      assert.deepStrictEqual(altered, {
        code: 2,
        stdout: "",
        stderr: "trigate: Standard input: Not a multi-sig proposal: network: Missing key, and 6 more\n"
      })
    }))
})

describe("an action that the venue takes in part", () => {
  it.live("prints the result of each leg, and fails", () =>
    Effect.gen(function*() {
      const refusal = "Order was never placed, already canceled, or filled. asset=0"
      const body = `{"status":"ok","response":{"type":"cancel","data":{"statuses":["success",{"error":"${refusal}"}]}}}`
      const venue = yield* recordingUpstream(() => ({ body }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: venue.url })
      const shared = yield* folder
      const at = (name: string) => path.join(shared, name)
      const multisig = (args: ReadonlyArray<string>, { privateKey }: { readonly privateKey: string }, stdin = "") =>
        run(["multisig", ...args], {
          stdin,
          environment: { TRIGATE_GATEWAY_URL: url, TRIGATE_PRIVATE_KEY: privateKey }
        })
      const terms = ["--account", multiSigUser.address, "--leader", leader.address, "--threshold", "1"]
      const cancels = JSON.stringify({ type: "cancel", cancels: [{ a: 0, o: 1 }, { a: 0, o: 2 }] })
      yield* multisig(["propose", "action", "-", ...terms, "--save", at("proposal.json")], leader, cancels)
      yield* multisig(["approve", at("proposal.json"), "--save", at("approval.json")], cosigner)
      const submit = ["submit", at("proposal.json"), at("approval.json"), "--yes"]
      const { code, stderr, stdout } = yield* multisig(submit, leader)
      assert.match(
        stdout,
        /^venue {3}accepted\nsigner {2}0x[0-9a-f]{40}\nnonce {3}\d+\nleg 1 {3}done\nleg 2 {3}rejected \(UnknownOrder\): Order/u
      )
      assert.include(stderr, `trigate: The venue rejected legs of the action (UnknownOrder): ${refusal}\n`)
      assert.strictEqual(code, 6)
      assert.strictEqual(venue.seen.filter(({ path }) => path === "/exchange").length, 1)
    }))
})

/** A gateway that is ready, and that does not answer a signed action: it breaks the connection, or holds it. */
const mute = (does: "breaks" | "holds") =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{
        readonly url: string
        readonly server: Http.Server
        readonly bodies: Array<string>
        /** Settles when an action has come. */
        readonly came: Promise<void>
      }>((resume) => {
        const bodies: Array<string> = []
        const came = Promise.withResolvers<void>()
        const chain = { mode: "sandbox", upstreams: {} }
        const ready = {
          status: "ready",
          sandbox: false,
          network: "mainnet",
          chains: { trading: chain, tokens: chain, layer2: chain }
        }
        const server = Http.createServer((request, response) => {
          let body = ""
          request.on("data", (chunk: Buffer) => {
            body += chunk.toString("utf8")
          })
          request.on("end", () => {
            if (request.method === "GET") {
              response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(ready))
              return
            }
            bodies.push(body)
            came.resolve()
            if (does === "breaks") request.socket.destroy()
          })
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, server, bodies, came: came.promise }))
        })
      }),
      ({ server }) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    ({ bodies, came, url }) => ({ bodies, came, url })
  )

describe("a person at a terminal", () => {
  const signed = (url: string, typed: string | undefined, ...flags: ReadonlyArray<string>) =>
    run(["big-blocks", "on", "--gateway", url, ...flags], {
      environment: { TRIGATE_PRIVATE_KEY: trader.privateKey },
      ...(typed === undefined ? {} : { typed })
    })

  it.live("is asked before an action that is real; anything but yes sends nothing", () =>
    Effect.gen(function*() {
      const { bodies, url } = yield* mute("breaks")
      for (const typed of ["", "n", "maybe"]) {
        const { code, stderr } = yield* signed(url, typed)
        assert.strictEqual(code, 130)
        assert.deepStrictEqual(stderr.split("\n").slice(1), [
          `The action is sent to ${url}: a gateway for mainnet.`,
          "Send it? [y/N]",
          "trigate: Nothing was sent",
          ""
        ])
      }
      assert.strictEqual(bodies.length, 0)
      assert.strictEqual((yield* signed(url, " Yes ")).code, 7)
      assert.strictEqual(bodies.length, 1)
    }))

  it.live("is not asked with --yes, nor before the sandbox, nor where standard input is no terminal", () =>
    Effect.gen(function*() {
      const { bodies, url } = yield* mute("breaks")
      assert.notInclude((yield* signed(url, "n", "--yes")).stderr, "[y/N]")
      assert.notInclude((yield* signed(url, undefined)).stderr, "[y/N]")
      assert.strictEqual(bodies.length, 2)
      const real = yield* gateway({})
      assert.strictEqual((yield* signed(real.url, "n")).code, 0)
    }))
})

describe("an action whose answer is lost", () => {
  it.live("is sent once; says nonce and signer, and keeps the bytes that may be sent again", () =>
    Effect.gen(function*() {
      const { bodies, url } = yield* mute("breaks")
      const ended = withoutKeys(
        yield* run(["big-blocks", "on", "--gateway", url], { environment: { TRIGATE_PRIVATE_KEY: trader.privateKey } })
      )
      assert.strictEqual(bodies.length, 1)
      assert.deepStrictEqual([ended.code, ended.stdout], [7, ""])
      const { nonce } = JSON.parse(bodies[0] ?? "") as { readonly nonce: number }
      assert.deepStrictEqual(ended.stderr.split("\n").slice(1), [
        `The action is sent to ${url}: a gateway for mainnet.`,
        `The signed bytes, which you can send again unchanged: ${bodies[0]}`,
        `trigate: The connection to the gateway failed (TransportError). Nonce ${nonce}, signer ${trader.address}. Resend ` +
        "the identical bytes: a duplicate-nonce response then means that the first attempt was accepted. Do not sign the action again " +
        "under a fresh nonce before you know its outcome",
        ""
      ])
    }))

  it.live("is told of also when the command is interrupted before the answer", () =>
    Effect.gen(function*() {
      const { bodies, came, url } = yield* mute("holds")
      const sending = yield* start(["big-blocks", "on", "--gateway", url], {
        TRIGATE_PRIVATE_KEY: trader.privateKey
      })
      yield* Effect.promise(() => came)
      sending.signal("SIGINT")
      const ended = withoutKeys(yield* sending.ended)
      assert.deepStrictEqual([ended.code, ended.stdout], [130, ""])
      assert.include(ended.stderr, `\nThe signed bytes, which you can send again unchanged: ${bodies[0]}\n`)
      assert.include(ended.stderr, "\ntrigate: Interrupted while the action was in flight. Nonce ")
    }))
})
