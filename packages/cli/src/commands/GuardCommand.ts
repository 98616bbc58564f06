/** `trigate guard`: checks a file of policies, prints the use of their limits, and halts and resumes trading. */
import * as Admin from "@trigate/client/Admin"
import { type HaltTarget, type Policies, type Policy, ruleNames } from "@trigate/domain/actions/Policy"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Settings from "@trigate/server/settings/SettingsSources"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Guard from "@trigate/trading/guard/Guard"
import * as InfoUpstream from "@trigate/trading/InfoUpstream"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as Target from "../Target.ts"

const limitText = (limit: unknown): string =>
  Duration.isDuration(limit)
    ? Duration.format(limit)
    : Array.isArray(limit)
    ? limit.join(", ")
    : Predicate.isObject(limit)
    ? Object.entries(limit).map(([name, each]) => `${name} ${String(each)}`).join(", ")
    : String(limit)

const accountsText = ({ accounts, callers }: Policy): string =>
  (accounts === "*" ? "all accounts" : accounts.join(", ")) +
  (callers === undefined ? "" : `, sent by ${callers.join(", ")}`)

/** Lists each policy with its rules, one line for each rule. */
const policyLines = ({ otherAccounts = "relay", policies }: Policies): ReadonlyArray<string> => [
  ...policies.flatMap((policy) => [
    `${policy.name}: ${accountsText(policy)}`,
    ...ruleNames.flatMap((name) => policy[name] === undefined ? [] : [`  ${name}: ${limitText(policy[name])}`])
  ]),
  otherAccounts === "refuse" ? "Actions of other accounts are refused" : "Actions of other accounts pass"
]

const file = Argument.String("file").pipe(
  Argument.withDescription("File with the policies: .yaml, .toml or .json")
)

/** Judges a body by the policies, with the prices and the account's state that a gateway or the venue returns. */
const judge = Effect.fnUntraced(function*(body: Uint8Array) {
  const { admit } = yield* Admission.Admission
  const { check, status } = yield* Guard.Guard
  const admitted = yield* admit(body)
  yield* check(admitted)
  const { accounts: [used] } = yield* status
  yield* Console.log(
    used === undefined
      ? "The action passes: no policy applies to it"
      : `The action passes the policies of ${used.account}: ${used.policies.join(", ") || "none"}`
  )
})

const check = Command.make("check", {
  file,
  action: Output.textFlag(
    "action",
    "path",
    "Judge this signed JSON body of POST /exchange; nothing is sent to the venue"
  ),
  caller: Output.textFlag("caller", "name", "Judge the action as sent by the caller with this name"),
  network: Output.network,
  gateway: GatewayAccess.gatewayFlag
}, ({ action, caller, file, gateway, network }) =>
  Effect.gen(function*() {
    const policies = yield* Settings.readPolicies(file)
    if (Option.isNone(action)) return yield* Effect.forEach(policyLines(policies), (line) => Output.printText(line))
    const { href } = yield* GatewayAccess.parseBaseUrl(gateway)
    const body = yield* Output.bytes(action.value)
    const services = Guard.layer({ policies }).pipe(
      Layer.provide(InfoUpstream.layerHttpClient({ url: href })),
      Layer.provide(ActionLogMemory.layer()),
      // a body that was recorded earlier can be judged too
      Layer.merge(Admission.layer({ nonceWindow: { past: "36500 days", future: "36500 days" } })),
      Layer.provide(VenueProfile.layer(network))
    )
    return yield* Layer.build(services).pipe(
      Effect.flatMap((context) => Effect.provideContext(judge(body), context)),
      Effect.scoped,
      Effect.provideService(
        CurrentCaller,
        background(Option.match(caller, { onNone: () => "local", onSome: (name) => `key:${name}` }))
      )
    )
  })).pipe(
    Command.provide(FetchHttpClient.layer),
    Command.withDescription(
      "Check a file of policies and list its rules; with --action, say whether a signed action would pass now"
    ),
    Command.withExamples([
      { command: "trigate guard check policies.yaml" },
      { command: "trigate guard check policies.yaml --action body.json" }
    ])
  )

const where = { ...Target.files, admin: Target.adminFlag }

/** Returns the function that calls a gateway's admin routes: those at `--admin`, or of the gateway that commands call. */
const connectAdmin = (admin: Option.Option<string>) =>
  Effect.flatMap(
    Option.match(admin, { onNone: () => GatewayAccess.usualAddress, onSome: Effect.succeed }),
    (address) => Target.admin("guard", address)
  )

const targetText = (target: HaltTarget): string =>
  "account" in target ? target.account : "coin" in target ? `orders in ${target.coin}` : "all actions"

const statusText = ({ accounts, halts, policies, refusals, version }: Guard.Status): string =>
  [
    ...halts.map((target) => `HALTED: ${targetText(target)}`),
    `Policies, version ${version}`,
    ...policyLines(policies),
    ...(accounts.length === 0 ? [] : [
      "",
      Output.rows(
        [
          Output.left("ACCOUNT"),
          Output.left("POLICIES"),
          ...["ORDERS/MIN", "RESERVED", "OPEN", "TOTAL", "LOSS"].map(Output.right)
        ],
        accounts.map(({ account, losses, notional, orders, policies, reserved }) => [
          account,
          policies.join(", "),
          String(orders),
          String(reserved),
          ...(["open", "total"] as const).map((each) =>
            notional.map((sums) => `${sums[each].toFixed(2)} ${sums.quote}`).join(", ") || "-"
          ),
          losses.map(({ loss, since, zone }) => `${loss.toFixed(2)} since ${since} ${zone}`).join(", ") || "-"
        ])
      )
    ]),
    ...(refusals.length === 0 ? [] : ["", "Latest refusals"]),
    ...refusals.slice(0, maxRefusals).map(({ actionType, caller, time, violation }) =>
      `  ${
        DateTime.formatIso(DateTime.makeUnsafe(time))
      } ${violation.rule}: ${actionType} by ${caller}: ${violation.message}`
    )
  ].join("\n")

const maxRefusals = 10

const status = Command.make(
  "status",
  { ...where, json: Output.booleanFlag("json", "As JSON") },
  ({ admin, json }) =>
    Effect.gen(function*() {
      const found = yield* (yield* connectAdmin(admin))(Admin.guard())
      yield* json ? Output.printJson(found) : Output.printText(statusText(found))
    })
).pipe(
  Command.provide(FetchHttpClient.layer),
  Command.withDescription("Print the policies of a running gateway, the use of their limits, halts and refusals"),
  Command.withExamples([{ command: "trigate guard status" }])
)

const target = {
  account: Output.addressFlag("account").pipe(Flag.optional, Flag.withDescription("Only the actions of this account")),
  coin: Output.textFlag("coin", "coin", "Only orders in this coin"),
  all: Output.booleanFlag("all", "All actions of all accounts")
}

type Target = Command.Command.Config.Infer<typeof target>

const readTarget = ({ account, all, coin }: Target): Effect.Effect<HaltTarget, Output.UsageFault> => {
  const given = [
    ...Option.toArray(Option.map(account, (account): HaltTarget => ({ account }))),
    ...Option.toArray(Option.map(coin, (coin): HaltTarget => ({ coin }))),
    ...(all ? [{ all: true } as const] : [])
  ]
  const [first, second] = given
  return first === undefined || second !== undefined
    ? Effect.fail(Output.fault("Name one of --account, --coin and --all"))
    : Effect.succeed(first)
}

const halt = Command.make("halt", { ...where, ...target }, ({ admin, ...given }) =>
  Effect.gen(function*() {
    const stopped = yield* readTarget(given)
    yield* (yield* connectAdmin(admin))(Admin.haltGuard(stopped))
    yield* Output.printText(`Halted: ${targetText(stopped)}. Cancels and reduce-only orders still pass`)
  })).pipe(
    Command.provide(FetchHttpClient.layer),
    Command.withDescription(
      "Stop trading through a running gateway at once; cancels and reduce-only orders still pass"
    ),
    Command.withExamples([{ command: "trigate guard halt --all" }, { command: "trigate guard halt --coin BTC" }])
  )

const resume = Command.make("resume", { ...where, ...target }, ({ admin, ...given }) =>
  Effect.gen(function*() {
    const stopped = yield* readTarget(given)
    const { resumed } = yield* (yield* connectAdmin(admin))(Admin.resumeGuard(stopped))
    yield* Output.printText(resumed ? `Resumed: ${targetText(stopped)}` : `There was no halt of ${targetText(stopped)}`)
  })).pipe(
    Command.provide(FetchHttpClient.layer),
    Command.withDescription("End a halt"),
    Command.withExamples([{ command: "trigate guard resume --all" }])
  )

/** `trigate guard`. */
export const command = Command.make("guard").pipe(
  Command.withDescription(
    "Check policies for signed actions, print the use of their limits, and halt or resume trading"
  ),
  Command.withSubcommands([check, status, halt, resume])
)
