/**
 * The examples of the official Python library, unmodified but for the addresses and switches that their comments ask
 * for, against a sandbox of testnet. `TRIGATE_PYTHON_EXAMPLES` is the folder `examples` of a checkout of
 * hyperliquid-python-sdk 0.23.0, and `TRIGATE_TEST_PYTHON` a Python that can import the library.
 */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport } from "@nktkas/hyperliquid"
import { keys, type TestKey } from "@trigate/sandbox/SandboxExamples"
import { send } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { getAddress } from "viem"
import { privateKeyToAccount } from "viem/accounts"

const folder = process.env["TRIGATE_PYTHON_EXAMPLES"]
const command = process.env["TRIGATE_TEST_PYTHON"] ?? "python3"

/** The sandbox in which an example runs. */
interface Sandbox {
  readonly control: (what: string, body: object) => Effect.Effect<unknown>
  readonly trader: ExchangeClient
  readonly other: ExchangeClient
}

type Replacements = ReadonlyArray<readonly [from: string, to: string]>

interface Example {
  /** The key in `config.json`. Default: the trader's. */
  readonly key?: TestKey
  /** The refusals that it prints; the venue gives them too. */
  readonly refusals?: ReadonlyArray<string>
  /** The error that ends it; otherwise it ends without one. */
  readonly raises?: string
  /** Makes the state that it expects. Returns what its comments ask the reader to fill in. */
  readonly prepare?: (sandbox: Sandbox) => Effect.Effect<Replacements | void>
  /** For one that does not end: all that it prints before it is ended. */
  readonly until?: ReadonlyArray<string>
}

const zero = `0x${"0".repeat(40)}` as const
const first = `0x${"0".repeat(39)}1` as const

const account = (user: string, members: object) => ({ control }: Sandbox) =>
  Effect.asVoid(control("accounts", { user, ...members }))

/** The sandbox's multi-sig account, of which the keys in `config.json` are co-signers. Its leader sends the actions. */
const multiSig: Example = {
  key: keys.leader,
  prepare: (sandbox) =>
    Effect.as(account(keys.leader.address, { usd: "5" })(sandbox), [
      ["0x0000000000000000000000000000000000000005", keys.multiSigUser.address]
    ])
}

const toDex = ({ trader }: Sandbox) =>
  Effect.asVoid(Effect.promise(() =>
    trader.sendAsset({
      destination: keys.trader.address,
      sourceDex: "spot",
      destinationDex: "test",
      token: "USDC:0xeb62eee3685fc4c43992febcd9e75443",
      amount: "500"
    })
  ))

/** A validator's action. */
const validator = (name: string): Example => ({
  key: keys.validator,
  prepare: (sandbox) =>
    Effect.as(account(keys.validator.address, { usd: "5" })(sandbox), [[`ACTION = ""`, `ACTION = "${name}"`]])
})

/** Delegates the stake that a deployer needs. */
const stake = (sandbox: Sandbox) =>
  Effect.gen(function*() {
    yield* account(keys.trader.address, { spot: [{ token: 1105, amount: "600000" }] })(sandbox)
    const wei = 50_000_000_000_000
    yield* Effect.promise(() => sandbox.trader.cDeposit({ wei }))
    yield* Effect.promise(() =>
      sandbox.trader.tokenDelegate({ validator: keys.validator.address, wei, isUndelegate: false })
    )
    return [[`DUMMY_DEX = "test"`, `DUMMY_DEX = "mine"`], [
      "REGISTER_PERP_DEX = False",
      "REGISTER_PERP_DEX = True"
    ]] as const
  })

const web3 = { raises: "ModuleNotFoundError: No module named 'web3'" }
const lz4 = { raises: "ModuleNotFoundError: No module named 'lz4'" }

const examples: { readonly [name: string]: Example } = {
  basic_adding: { until: ["open_orders [{'coin': 'ETH', 'side': 'B'", "'side': 'A'"] },
  basic_agent: {},
  basic_builder_fee: {},
  basic_convert_to_multi_sig_user: {
    prepare: (sandbox) => Effect.asVoid(Effect.forEach([zero, first], (user) => account(user, { usd: "5" })(sandbox)))
  },
  basic_evm_use_big_blocks: {},
  basic_leverage_adjustment: {
    // margin modes cannot be switched while there is a position, and there is none before
    refusals: ["Cannot update margin for empty position."]
  },
  basic_market_order: {},
  basic_order: {},
  basic_order_modify: {},
  basic_order_with_builder_deployed_dex: { prepare: toDex },
  basic_order_with_cloid: {},
  basic_recover_user: {},
  basic_schedule_cancel: {},
  basic_send_asset: {},
  basic_set_referrer: {
    prepare: ({ control, other }) =>
      Effect.gen(function*() {
        yield* control("accounts", { user: keys.validator.address, usd: "5", volume: "10000" })
        yield* Effect.promise(() => other.registerReferrer({ code: "ASDFASDF" }))
      })
  },
  basic_spot_order: {},
  basic_spot_to_builder_deployed_perp_dex: {},
  basic_spot_to_perp: {},
  basic_spot_transfer: { prepare: account(keys.trader.address, { spot: [{ token: 1, amount: "10" }] }) },
  // the library has no function of that name
  basic_staking: {
    raises: "AttributeError: 'Info' object has no attribute 'user_stakes'. Did you mean: 'user_state'?"
  },
  basic_sub_account: {},
  basic_tpsl: {},
  basic_transfer: {},
  basic_vault: {
    prepare: ({ trader }) =>
      Effect.map(
        Effect.promise(() =>
          trader.createVault({ name: "mine", description: "a vault of mine", initialUsd: 100_000_000 })
        ),
        ({ response }) => [["0x1719884eb866cb12b2287399b15f7db5e7d775ea", response.data]]
      )
  },
  // a vault of testnet
  basic_vault_transfer: { refusals: ["Vault not registered: 0xa15099a30bbf2e68942d6f4c43d70d04faeab0a0"] },
  basic_withdraw: {},
  basic_ws: {
    until: [
      "activeAssetCtx",
      "activeSpotAssetCtx",
      "activeAssetData",
      "allMids",
      "bbo",
      "candle",
      "l2Book",
      "trades",
      "userFills",
      "userFundings",
      "userNonFundingLedgerUpdates"
    ].map((channel) => `{'channel': '${channel}'`)
  },
  c_signer: validator("Jail"),
  // its validator has delegations disabled, so that the venue would refuse the initial stake
  c_validator: {
    prepare: () =>
      Effect.succeed([[`ACTION = ""`, `ACTION = "Register"`], [
        "delegations_disabled = True",
        "delegations_disabled = False"
      ]])
  },
  cancel_open_orders: {},
  dex_abstraction: {
    prepare: ({ trader }) => Effect.asVoid(Effect.promise(() => trader.createSubAccount({ name: "One" })))
  },
  evm_block_indexer: lz4,
  evm_erc20: web3,
  multi_sig_convert_to_normal_user: multiSig,
  multi_sig_order: multiSig,
  multi_sig_register_token: {
    ...multiSig,
    prepare: (sandbox) =>
      Effect.andThen(
        account(keys.multiSigUser.address, { spot: [{ token: 1105, amount: "3000" }] })(sandbox),
        multiSig.prepare?.(sandbox) ?? Effect.void
      )
  },
  multi_sig_usd_send: multiSig,
  parse_token_delegate_from_replica_cmds: lz4,
  // prices of a perpetual that it does not register
  perp_deploy: { prepare: stake, refusals: ["Error deploying perp: invalid oracle prices"] },
  // the bid is one wei of HYPE, and the price of the order is far from the market
  priority_fees: {
    prepare: toDex,
    refusals: [
      "Insufficient gas at current auction price.",
      "Order could not immediately match against any resting orders. asset=110000"
    ]
  },
  rounding: {},
  spot_deploy: {
    prepare: (sandbox) =>
      Effect.as(
        account(keys.trader.address, {
          spot: [{ token: 1105, amount: "3000" }, { token: 1, amount: "10" }]
        })(sandbox),
        [["_PRIVILEGE = False", "_PRIVILEGE = True"], ["_FEE_SHARE = False", "_FEE_SHARE = True"]]
      )
  },
  user_abstraction: {
    prepare: (sandbox) =>
      Effect.gen(function*() {
        const { response: { data } } = yield* Effect.promise(() => sandbox.trader.createSubAccount({ name: "One" }))
        // portfolio margin requires $10000
        yield* account(data, { usd: "10000" })(sandbox)
        return [[`SUB_ACCOUNT_USER = "${zero}"`, `SUB_ACCOUNT_USER = "${data}"`]] as const
      })
  }
}

const makeConfig = ({ privateKey: secret_key }: TestKey) => ({
  keystore_path: "",
  secret_key,
  account_address: "",
  multi_sig: {
    authorized_users: [keys.leader, keys.cosigner].map(({ address, privateKey }) => ({
      secret_key: privateKey,
      account_address: getAddress(address)
    }))
  }
})

/** Sets the library's addresses before the example imports them: mainnet's differs, because the signatures depend on it. */
const customize = `import hyperliquid.utils.constants as constants, os
constants.TESTNET_API_URL = os.environ["SANDBOX"]
constants.MAINNET_API_URL = os.environ["SANDBOX"].replace("127.0.0.1", "localhost")
`

interface Ended {
  readonly code: number | null
  readonly printed: string
}

/** Runs an example, until it ends or has printed all of `until`. */
const run = (cwd: string, name: string, url: string, until: ReadonlyArray<string> = []) =>
  Effect.callback<Ended>((resume) => {
    const PYTHONPATH = [cwd, process.env["PYTHONPATH"] ?? ""].join(":")
    const env = { ...process.env, PYTHONPATH, PYTHONUNBUFFERED: "1", SANDBOX: url }
    const child = spawn(command, [`${name}.py`], { cwd, env, stdio: "pipe" })
    let printed = ""
    const read = (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      if (until.length > 0 && until.every((text) => printed.includes(text))) child.kill()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("close", (code) => resume(Effect.succeed({ code, printed })))
    return Effect.sync(() => child.kill())
  })

const refusalsIn = (printed: string): ReadonlyArray<string> =>
  [...printed.matchAll(/(?:'status': 'err', 'response'|'error'): '([^']*)'/gu)].map(([, text = ""]) => text)

if (folder === undefined) console.log("Not run here: the examples of hyperliquid-python-sdk (TRIGATE_PYTHON_EXAMPLES)")

describe.runIf(folder !== undefined)("the examples of the Python library", () => {
  const source = folder ?? ""
  it.live(
    "run against a sandbox of testnet",
    () =>
      Effect.gen(function*() {
        const { url } = yield* hostedGateway({ TRIGATE_NETWORK: "testnet" })
        const cwd = yield* Effect.acquireRelease(
          Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "examples-"))),
          (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
        )
        fs.cpSync(source, cwd, { recursive: true })
        fs.writeFileSync(path.join(cwd, "sitecustomize.py"), customize)
        const names = fs.readdirSync(cwd).filter((file) => /^(?!example_utils|sitecustomize).*\.py$/u.test(file))
        assert.deepStrictEqual(names.map((file) => file.slice(0, -3)), Object.keys(examples))

        const transport = new HttpTransport({ apiUrl: url, isTestnet: true })
        const client = ({ privateKey }: { readonly privateKey: `0x${string}` }) =>
          new ExchangeClient({ transport, wallet: privateKeyToAccount(privateKey) })
        const sandbox: Sandbox = {
          trader: client(keys.trader),
          other: client(keys.validator),
          control: Effect.fnUntraced(function*(what, body) {
            const headers = { "content-type": "application/json" }
            const { json, text } = yield* send(`${url}/admin/sandbox/${what}`, {
              method: "POST",
              headers,
              body: JSON.stringify(body)
            })
            assert.isDefined(JsonParts.at(json, "seed"), text)
            return json
          }, Effect.orDie)
        }
        const ended: { [name: string]: unknown } = {}
        const expected: { [name: string]: unknown } = {}
        for (const [name, { key = keys.trader, prepare, raises, refusals = [], until }] of Object.entries(examples)) {
          yield* sandbox.control("reset", {})
          yield* sandbox.control("prices", { coin: "ETH", points: [{ time: 0, price: 3_000 }] })
          const replacements = prepare === undefined ? [] : (yield* prepare(sandbox)) ?? []
          fs.writeFileSync(path.join(cwd, "config.json"), JSON.stringify(makeConfig(key)))
          const file = path.join(cwd, `${name}.py`)
          const text = fs.readFileSync(file, "utf8")
          for (const [from] of replacements) assert.include(text, from, name)
          fs.writeFileSync(file, replacements.reduce((all, [from, to]) => all.replaceAll(from, to), text))
          const { code, printed } = yield* run(cwd, name, url, until)
          const raised = printed.trimEnd().split("\n").at(-1)
          ended[name] = [...refusalsIn(printed), raises === undefined ? code : raised]
          expected[name] = [...refusals, raises ?? (until === undefined ? 0 : null)]
          const isExpected = JSON.stringify(ended[name]) === JSON.stringify(expected[name])
          if (!isExpected) console.log(`${name}:\n${printed}`)
        }
        assert.deepStrictEqual(ended, expected)
      }),
    600_000
  )
})
