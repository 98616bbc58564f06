/** `trigate mcp`: a server of the Model Context Protocol, through which an AI agent reads the gateway and trades. */
import * as KeyStore from "@trigate/callers/KeyStore"
import { printable } from "@trigate/domain/encoding/Encoding"
import { commandLine } from "@trigate/server/unstable/settings/Settings"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as GatewayAccess from "../GatewayAccess.ts"
import type * as McpTools from "../McpTools.ts"
import * as Output from "../Output.ts"
import * as Report from "../Report.ts"
import * as SignedSending from "../SignedSending.ts"
import * as ActionCommands from "./ActionCommands.ts"

const flags = {
  http: Flag.Int("http").pipe(
    Flag.withMetavar("port"),
    Flag.filter((port) => port >= 1 && port <= 65_535, (port) => `a port from 1 to 65535, not ${port}`),
    Flag.optional,
    Flag.withDescription(
      "Serve streamable HTTP at http://127.0.0.1:PORT/mcp (default: standard input and output); requests need the key in " +
        `${commandLine.mcpKey}, or the printed one`
    )
  ),
  approveAbove: Flag.Finite("approve-above").pipe(
    Flag.withMetavar("notional"),
    Flag.filter((notional) => notional >= 0, (notional) => `an amount in the quote token, not ${notional}`),
    Flag.withDefault(1000),
    Flag.withDescription("Notional above which a person has to approve an order, in the quote token (default: 1000)")
  ),
  live: Output.booleanFlag("live", "Also sign orders and cancels for a real venue (default: only for a sandbox)"),
  network: Output.network,
  ...SignedSending.keyFlags
}

/** The minimum number of characters of a key from the environment. */
const shortestKey = 16

type Given = Command.Command.Config.Infer<typeof flags>

const hasKey = ({ keyEnv, keyFile }: SignedSending.KeyOptions) =>
  Option.isSome(keyEnv) || Option.isSome(keyFile)
    ? Effect.succeed(true)
    : Config.option(Config.Redacted(commandLine.privateKey)).pipe(
      Effect.map(Option.exists((key) => Redacted.value(key).trim() !== "")),
      Effect.orDie
    )

/** Returns the key for requests over HTTP: from the environment, otherwise a new one. */
const findHttpKey = Config.option(Config.Redacted(commandLine.mcpKey)).pipe(
  Effect.orDie,
  Effect.flatMap(Option.match({
    onNone: () => Effect.map(KeyStore.generate, ({ key }) => ({ key, shown: Option.some(key) })),
    onSome: (key) =>
      Redacted.value(key).length < shortestKey
        ? Output.fault(`${commandLine.mcpKey} has fewer than ${shortestKey} characters`)
        : Effect.succeed({ key, shown: Option.none() })
  }))
)

/** Finds the signer, and whether it can trade: returns the options of the tools, and why there are no writing tools. */
const findOptions = Effect.fnUntraced(
  function*({ approveAbove, live, network, ...key }: Given, isSandbox: boolean, tools: typeof McpTools) {
    const options: McpTools.Options = { own: undefined, trading: undefined }
    if (!(yield* hasKey(key))) return { options, reason: `there is no private key (${commandLine.privateKey})` }
    const signer = yield* SignedSending.loadSigner(key)
    const own = { signer, account: yield* SignedSending.ofSigner(signer.address) }
    if (!isSandbox && !live) return { options: { ...options, own }, reason: "the venue is real, and --live is not set" }
    const reason = yield* Effect.catchTag(
      tools.findUnguarded({ ...own, network }),
      "RequestError",
      ({ reason: { message } }) => Effect.succeed(message)
    )
    return { options: { own, trading: reason === undefined ? { ...own, approveAbove, network } : undefined }, reason }
  }
)

const serve = Effect.fnUntraced(function*(given: Given) {
  if (Option.isNone(given.http) && Option.contains(given.keyFile, "-")) {
    return yield* Output.fault("--key-file - reads standard input, which the client needs; use --http, or name a file")
  }
  const access = yield* GatewayAccess.connect
  const { sandbox } = yield* SignedSending.checkNetwork(access, given.network)
  // imported only when this command runs: the other commands start faster without the server
  const tools = yield* Effect.promise(() => import("../McpTools.ts"))
  const { options, reason } = yield* findOptions(given, sandbox, tools)
  const sentences = [
    `The gateway at ${access.origin} serves ${
      sandbox ? "a sandbox, with simulated funds and prices" : `the real ${given.network}`
    }.`,
    options.trading === undefined
      ? `The tools only read: ${reason}.`
      : `Orders are signed by ${options.trading.signer.address} for the account ${options.trading.account}. Orders above ${given.approveAbove} in the quote token need a person's approval.`
  ]
  const http = Option.isNone(given.http) ? undefined : { port: given.http.value, ...(yield* findHttpKey) }
  const address = http === undefined ? [] : [
    `The address is http://127.0.0.1:${http.port}/mcp. Each request needs the header ` +
    `Authorization: Bearer ${
      Option.match(http.shown, { onNone: () => `$${commandLine.mcpKey}`, onSome: Redacted.value })
    }`
  ]
  yield* Output.printNotes([...sentences, ...address])
  yield* Report.endByInterruption
  return yield* tools.serve({
    ...options,
    instructions: printable(sentences.join(" ")),
    version: yield* Output.readVersion,
    http
  })
})

/** `trigate mcp`. */
export const command = Command.make("mcp", flags, serve).pipe(
  Command.withDescription(
    "Serve tools for an AI agent with the Model Context Protocol: markets, candles, accounts, fills, outcomes of actions, and the " +
      "inspector. With a private key, and if a policy of the gateway applies to its account (see trigate guard), also " +
      "place_order and cancel_orders: the gateway refuses orders beyond its policies"
  ),
  Command.withShortDescription("Serve tools for an AI agent (MCP)"),
  Command.withExamples([
    { command: "trigate mcp", description: "For a client that starts this command" },
    { command: "trigate mcp --http 8090 --approve-above 500" }
  ]),
  Command.provide(() =>
    // the client reads protocol messages from standard output
    Layer.mergeAll(
      ActionCommands.layer(),
      FetchHttpClient.layer,
      SecureRandom.layerWebCrypto,
      Layer.succeed(Logger.LogToStderr, true)
    )
  ),
  Command.withGlobalFlags([GatewayAccess.Gateway])
)
