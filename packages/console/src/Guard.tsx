/** The guard: halts, the use of each account's limits, the policies, and the latest refusals. */
import { useSignal } from "@preact/signals"
import type { GuardStatus } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import type { Connection } from "@trigate/client/Connection"
import * as Policy from "@trigate/domain/actions/Policy"
import { closestWord } from "@trigate/domain/errors/Problem"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ComponentChildren } from "preact"
import * as Gateway from "./Gateway.ts"
import { usePolled } from "./Live.ts"
import * as Table from "./Table.tsx"

type AccountUse = GuardStatus["accounts"][number]
type GuardRefusal = GuardStatus["refusals"][number]

const guide = "https://github.com/trigate/trigate/blob/main/docs/guides/guard.md"

/** The names of the rules, and of the other reasons of a refusal. */
const titles = {
  actions: "Actions",
  coins: "Coins",
  reduceOnly: "Reduce-only orders",
  cloidRequired: "Client order ID",
  expiresWithin: "Expiry",
  hours: "Hours",
  destinations: "Destinations",
  builderFee: "Builder fee",
  leverage: "Leverage",
  marginMode: "Margin mode",
  orderNotional: "Notional of an order",
  actionNotional: "Notional of an action",
  priceBand: "Distance to mid price",
  oracleBand: "Distance to oracle price",
  marketSlippage: "Slippage",
  ordersPerMinute: "New orders",
  openNotional: "Open orders",
  positionNotional: "Position in a coin",
  totalNotional: "All positions together",
  loss: "Loss",
  account: "Account",
  halt: "Halt",
  maxAge: "Age of prices and state",
  signature: "Signature",
  store: "Shared store"
} satisfies { readonly [Name in Policy.RuleName]: string } & { readonly [name: string]: string }

const ruleTitles = new Map(Object.entries(titles))

/** Formats a number with narrow spaces between thousands and at most two decimals. */
const amount = (value: number): string => {
  const [whole, decimals] = String(Number(value.toFixed(2))).split(".")
  return decimals === undefined ? Table.count(value) : `${Table.count(Number(whole))}.${decimals}`
}

const atMost = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : `at most ${amount(value)}`

const inQuote = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : `at most ${amount(value)} in the quote token`

const basisPoints = (value: number): string => `${amount(value)} basis points (${Number((value / 100).toFixed(4))} %)`

const duration = (value: Duration.Duration): string => Duration.format(value).replaceAll(/(\d)(\D)/gu, "$1\u00a0$2")

const dayNames = { mon: "Mon", tue: "Tue", wed: "Wed", thu: "Thu", fri: "Fri", sat: "Sat", sun: "Sun" } as const

const hoursText = ({ days, from, to, zone }: Policy.Hours): string =>
  `${from} to ${to} (${zone})${days === undefined ? "" : ` on ${days.map((day) => dayNames[day]).join(", ")}`}`

const actionsText = (actions: ReadonlyArray<string> = ["trading"]): string =>
  actions.map((name) => name === "trading" ? "orders, leverage and margin" : name).join(", ")

const coinsText = (coins: ReadonlyArray<string>): string =>
  coins.map((coin) => coin.endsWith(":*") ? `all of ${coin.slice(0, -2)}` : coin).join(", ")

const positionsText = (limit: NonNullable<Policy.Policy["positionNotional"]>): string | undefined =>
  typeof limit === "number"
    ? inQuote(limit)
    : Object.entries(limit).map(([coin, each]) => `${coin === "*" ? "other coins" : coin} at most ${amount(each)}`)
      .join(", ")

/** The number of accounts that are shown without a click. */
const shownAccounts = 4

const Addresses = ({ all }: { readonly all: ReadonlyArray<string> }) => {
  const list = all.map((address) => (
    <div key={address}>
      <code>{address}</code>
    </div>
  ))
  return all.length <= shownAccounts
    ? <>{list}</>
    : (
      <details>
        <summary>{Table.count(all.length)} accounts</summary>
        {list}
      </details>
    )
}

/** Describes what each rule of a policy lets pass; a rule that limits nothing is `undefined`. */
const ruleTexts = (policy: Policy.Policy): { readonly [Name in Policy.RuleName]: ComponentChildren } => ({
  actions: actionsText(policy.actions),
  coins: policy.coins === undefined ? undefined : coinsText(policy.coins),
  reduceOnly: policy.reduceOnly === true ? "no others" : undefined,
  cloidRequired: policy.cloidRequired === true ? "required for each order" : undefined,
  expiresWithin: policy.expiresWithin === undefined
    ? undefined
    : `each action within ${duration(policy.expiresWithin)}`,
  hours: policy.hours === undefined ? undefined : hoursText(policy.hours),
  destinations: policy.destinations === undefined
    ? undefined
    : policy.destinations.length === 0
    ? "no other account"
    : <Addresses all={policy.destinations} />,
  builderFee: policy.builderFee === undefined ? undefined : `at most ${basisPoints(policy.builderFee)}`,
  leverage: policy.leverage === undefined ? undefined : `at most ${policy.leverage}x`,
  marginMode: policy.marginMode,
  orderNotional: inQuote(policy.orderNotional),
  actionNotional: inQuote(policy.actionNotional),
  priceBand: policy.priceBand === undefined ? undefined : `within ${basisPoints(policy.priceBand)}`,
  oracleBand: policy.oracleBand === undefined ? undefined : `within ${basisPoints(policy.oracleBand)}`,
  marketSlippage: policy.marketSlippage === undefined ? undefined : `at most ${basisPoints(policy.marketSlippage)}`,
  ordersPerMinute: policy.ordersPerMinute === undefined ? undefined : `${atMost(policy.ordersPerMinute)} per minute`,
  openNotional: inQuote(policy.openNotional),
  positionNotional: policy.positionNotional === undefined ? undefined : positionsText(policy.positionNotional),
  totalNotional: inQuote(policy.totalNotional),
  loss: policy.loss === undefined
    ? undefined
    : `at most ${amount(policy.loss.limit)} USDC since ${policy.loss.since} (${policy.loss.zone})`
})

const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const PolicyCard = ({ policy }: { readonly policy: Policy.Policy }) => {
  const { accounts, callers, maxAge, name } = policy
  const texts = ruleTexts(policy)
  return (
    <section class="card policy" aria-label={`Policy ${name}`}>
      <h3>{name}</h3>
      <dl>
        <Fact name="Accounts">{accounts === "*" ? "all" : <Addresses all={accounts} />}</Fact>
        {callers === undefined ? null : <Fact name="Sent by the callers">{callers.join(", ")}</Fact>}
        {Policy.ruleNames.map((rule) =>
          texts[rule] === undefined ? null : <Fact key={rule} name={titles[rule]}>{texts[rule]}</Fact>
        )}
        {maxAge === undefined ? null : <Fact name={titles.maxAge}>at most {duration(maxAge)}</Fact>}
      </dl>
    </section>
  )
}

const PoliciesPart = ({ policies: { otherAccounts = "relay", policies } }: Pick<GuardStatus, "policies">) => (
  <section aria-labelledby="policies-title">
    <h2 id="policies-title">Policies</h2>
    <div class="policies">{policies.map((policy) => <PolicyCard key={policy.name} policy={policy} />)}</div>
    <p class="muted">
      Cancels always pass. Actions of accounts without a policy {otherAccounts === "refuse" ? "are refused" : "pass"}.
      {" "}
      The quote token is that of the market: USDC for the venue's own perpetuals.
    </p>
  </section>
)

/** The share of a limit from which its bar has the colour of a warning. */
const warnAt = 0.8

/** Shows the use of a limit. `used` is absent if no positions and orders of the account were seen. */
const LimitTile = ({ limit, title, unit = "", used }: {
  readonly title: string
  readonly limit: number | undefined
  readonly used: number | undefined
  readonly unit?: string | undefined
}) => {
  if (limit === undefined) return null
  const value = used === undefined ? "–" : Table.count(used)
  const bound = `of ${amount(limit)} ${unit}`.trimEnd()
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <strong>{value}</strong> <span class="muted">{bound}</span>
        <meter
          min={0}
          max={Math.max(1, limit)}
          high={limit * warnAt}
          optimum={0}
          value={used ?? 0}
          aria-label={`${title}: ${value} ${bound}`}
        />
      </dd>
    </div>
  )
}

const PolicyUse = (
  { policy: { loss, name, openNotional, ordersPerMinute, totalNotional }, use: { losses, notional, orders } }: {
    readonly policy: Policy.Policy
    readonly use: AccountUse
  }
) => {
  const lost = losses.find(({ since, zone }) => since === loss?.since && zone === loss.zone)
  const sums = notional.length === 0 ? [undefined] : notional
  return openNotional === undefined && ordersPerMinute === undefined && totalNotional === undefined &&
      loss === undefined
    ? (
      <>
        <h4>{name}</h4>
        <p class="muted">Its limits apply to each action alone.</p>
      </>
    )
    : (
      <>
        <h4>{name}</h4>
        <dl class="tiles">
          <LimitTile title="New orders in the last minute" limit={ordersPerMinute} used={orders} />
          {sums.map((sum) => (
            <LimitTile
              key={sum?.quote}
              title={titles.openNotional}
              limit={openNotional}
              used={sum?.open}
              unit={sum?.quote}
            />
          ))}
          {sums.map((sum) => (
            <LimitTile
              key={sum?.quote}
              title="All positions, if all orders fill"
              limit={totalNotional}
              used={sum?.total}
              unit={sum?.quote}
            />
          ))}
          {loss === undefined
            ? null
            : (
              <LimitTile
                title={`Loss since ${loss.since} (${loss.zone})`}
                limit={loss.limit}
                used={lost === undefined ? undefined : Math.max(0, Math.round(lost.loss * 100) / 100)}
                unit="USDC"
              />
            )}
        </dl>
      </>
    )
}

const counted = (value: number, noun: string): string => `${Table.count(value)} ${noun}${value === 1 ? "" : "s"}`

const AccountPart = ({ policies, use }: { readonly use: AccountUse; readonly policies: Policy.Policies }) => {
  const own = policies.policies.filter((policy) => Policy.covers(policy, use.account.toLowerCase()))
  return (
    <div class="use">
      <h3>
        <a href={Gateway.linkTo("account", { of: use.account })}>
          <code>{use.account}</code>
        </a>
      </h3>
      <p>
        {counted(use.orders, "new order")} in the last minute, {counted(use.reserved, "reserved action")}{" "}
        whose effect is not known yet
      </p>
      {own.length === 0
        ? <p class="muted">No policy names this account.</p>
        : own.map((policy) => <PolicyUse key={policy.name} policy={policy} use={use} />)}
    </div>
  )
}

const callerText = (caller: string): string =>
  caller.startsWith("key:")
    ? `sent by ${caller.slice(4)}`
    : caller.startsWith("address:")
    ? `sent from ${caller.slice(8)}`
    : `sent by ${caller}`

/** Groups the digits of the large numbers in a sentence. */
const groupDigits = (text: string): string =>
  text.replaceAll(/(?<![\w.])\d{5,}(?![\w])/gu, (digits) => Table.count(Number(digits)))

const RefusalItem = ({ actionType, caller, time, violation }: GuardRefusal) => (
  <li>
    <time dateTime={Table.iso(time)}>{Table.instant(time)}{Table.clock(time).slice(5, 8)}</time>
    <strong>{ruleTitles.get(violation.rule) ?? violation.rule}</strong>
    <div>
      {groupDigits(Table.plain(violation.message))}
      <div class="muted">
        <code>{actionType}</code> {callerText(caller)}
        {violation.policy === undefined ? "" : `, policy ${violation.policy}`}
        {violation.account === undefined ? null : (
          <>
            , account <code>{Table.short(violation.account)}</code>
          </>
        )}
      </div>
    </div>
  </li>
)

const Refusals = ({ refusals }: Pick<GuardStatus, "refusals">) => (
  <section class="card" aria-labelledby="refusals-title">
    <h2 id="refusals-title">Latest refusals</h2>
    {refusals.length === 0
      ? <p class="muted">None: the guard has refused no action since the gateway's start.</p>
      : (
        <>
          <ol class="refusals">
            {refusals.map((refusal, at) => (
              <RefusalItem
                key={`${refusal.time} ${refusals.length - at}`}
                {...refusal}
              />
            ))}
          </ol>
          <p class="muted">Newest first, at most 50, of this gateway. Times are UTC.</p>
        </>
      )}
  </section>
)

const targetText = (target: Policy.HaltTarget): string =>
  "account" in target
    ? `the account ${target.account}`
    : "coin" in target
    ? `orders in ${target.coin}`
    : "all actions"

const decodeTarget = Schema.decodeUnknownResult(Policy.HaltTarget)

const HaltForm = ({ onHalt }: { readonly onHalt: (target: Policy.HaltTarget) => void }) => {
  const scope = useSignal("all")
  const failure = useSignal<string | undefined>(undefined)
  const choose = (chosen: string): void => {
    scope.value = chosen
    if (chosen === "coin" && Gateway.coins.value.length === 0) void Gateway.loadCoins()
  }
  return (
    <section class="card" aria-labelledby="halt-title">
      <h2 id="halt-title">Halt trading</h2>
      <form
        class="row"
        onSubmit={(event) => {
          const { name } = Table.formTexts(event)
          const target = decodeTarget(scope.value === "all" ? { all: true } : { [scope.value]: name })
          failure.value = Result.isFailure(target) ? target.failure.message : undefined
          if (Result.isSuccess(target)) onHalt(target.success)
        }}
      >
        <label>
          Scope{" "}
          <select name="scope" value={scope.value} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="all">all actions</option>
            <option value="account">an account</option>
            <option value="coin">orders in a coin</option>
          </select>
        </label>
        {scope.value === "account"
          ? (
            <label key="account">
              Account{" "}
              <input
                name="name"
                required
                size={44}
                pattern="0x[0-9a-fA-F]{40}"
                title="0x and 40 hexadecimal digits: the account itself, not its API wallet"
                placeholder="0x…"
                spellcheck={false}
              />
            </label>
          )
          : scope.value === "coin"
          ? (
            <label key="coin">
              Coin <input name="name" required maxLength={64} list="halted" size={10} spellcheck={false} />
              <datalist id="halted">{Gateway.coins.value.map((coin) => <option key={coin} value={coin} />)}</datalist>
            </label>
          )
          : null}
        <button type="submit" class="stop">Halt …</button>
      </form>
      {failure.value === undefined ? null : <p class="bad" role="alert">{failure.value}</p>}
      <p class="muted">
        Applies at once, also to accounts without a policy. Cancels and reduce-only orders still pass.
      </p>
    </section>
  )
}

/** Warns of a coin that the venue does not list, because its halt would stop nothing. */
const UnknownCoin = ({ target }: { readonly target: Policy.HaltTarget }) => {
  const coins = Gateway.coins.value
  // a builder dex, an outcome or a spot pair has other lists
  if (!("coin" in target) || coins.length === 0 || /[:@#/]/u.test(target.coin) || coins.includes(target.coin)) {
    return null
  }
  const meant = closestWord(target.coin, coins)
  return (
    <p class="bad">
      The venue lists no coin {target.coin}, so the halt stops nothing.
      {meant === undefined ? "" : ` Did you mean ${meant}?`}
    </p>
  )
}

/** Asks before a halt. */
const halting = (target: Policy.HaltTarget, act: () => Promise<void>): Table.Confirmation => ({
  title: `Halt ${targetText(target)}?`,
  verb: "Halt",
  act,
  consequences: (
    <>
      <UnknownCoin target={target} />
      <p>
        The gateway and its replicas refuse {"account" in target ? "its actions" : targetText(target)}{" "}
        until somebody resumes. Cancels and reduce-only orders still pass.
      </p>
      <p>Orders on the book stay there, and can still fill.</p>
    </>
  )
})

/** Asks before a halt ends. */
const resuming = (target: Policy.HaltTarget, act: () => Promise<void>): Table.Confirmation => ({
  title: `Resume ${targetText(target)}?`,
  verb: "Resume",
  act,
  consequences: <p>Actions pass again at once, if the policies and other halts allow them.</p>
})

const Halts = ({ halts, onResume }: Pick<GuardStatus, "halts"> & {
  readonly onResume: (target: Policy.HaltTarget) => void
}) => (
  <>
    {halts.map((target) => (
      <section key={targetText(target)} class="card halt" aria-label={`Halt of ${targetText(target)}`}>
        <p>
          <strong class="bad">Halted: {targetText(target)}.</strong> Cancels and reduce-only orders still pass.
        </p>
        <button
          type="button"
          onClick={() =>
            onResume(target)}
        >
          Resume …
        </button>
      </section>
    ))}
  </>
)

const hasLimits = ({ otherAccounts, policies }: Policy.Policies): boolean =>
  policies.length > 0 || otherAccounts === "refuse"

const NoPolicies = () => (
  <section class="card" aria-labelledby="none-title">
    <h2 id="none-title">This gateway has no policies</h2>
    <p>
      No limit applies to signed actions. With policies, this page shows how much of each limit every account uses, the
      rules of each policy, and the latest refusals.
    </p>
    <p>
      Write the policies to a file, check it with <code>trigate guard check policies.yaml</code>{" "}
      and start the gateway with <code>TRIGATE_GUARD=policies.yaml</code>: see{" "}
      <a href={guide} rel="noreferrer">A bot that cannot blow up</a>.
    </p>
  </section>
)

const Limits = ({ status: { accounts, policies, refusals } }: { readonly status: GuardStatus }) => {
  const hasPolicies = hasLimits(policies)
  return (
    <>
      {accounts.length === 0 && !hasPolicies ? null : (
        <section class="card" aria-labelledby="use-title">
          <h2 id="use-title">Use of the limits</h2>
          {accounts.length === 0
            ? <p class="muted">No account yet: each one appears here with its first action.</p>
            : accounts.map((use) => <AccountPart key={use.account} use={use} policies={policies} />)}
        </section>
      )}
      {hasPolicies ? <PoliciesPart policies={policies} /> : null}
      {refusals.length === 0 && !hasPolicies ? null : <Refusals refusals={refusals} />}
    </>
  )
}

/** The console's panel of the guard. Trading can be halted also if the guard's status cannot be read. */
export const Guard = () => {
  const [last, refresh] = usePolled(Admin.guard)
  const [dialog, confirm] = Table.useConfirmation()
  const told = useSignal<string | undefined>(undefined)
  const failure = useSignal<string | undefined>(undefined)
  const carryOut = async <A, E>(call: Effect.Effect<A, E, Connection>, done: string): Promise<void> => {
    const outcome = await Gateway.run(call)
    failure.value = "failure" in outcome ? outcome.failure : undefined
    told.value = "failure" in outcome ? undefined : done
    await refresh()
  }
  const halt = (target: Policy.HaltTarget): void =>
    confirm(halting(target, () => carryOut(Admin.haltGuard(target), `Halted: ${targetText(target)}.`)))
  const resume = (target: Policy.HaltTarget): void =>
    confirm(resuming(target, () => carryOut(Admin.resumeGuard(target), `Resumed: ${targetText(target)}.`)))
  if (last === undefined) return <p class="muted">Reading …</p>
  return (
    <>
      <p class="hidden" aria-live="polite">{told.value}</p>
      {failure.value === undefined ? null : <p class="card bad" role="alert">{failure.value}</p>}
      {"failure" in last
        ? <p class="card bad" role="alert">{last.failure}</p>
        : (
          <>
            <Halts halts={last.value.halts} onResume={resume} />
            {hasLimits(last.value.policies) ? null : <NoPolicies />}
          </>
        )}
      <HaltForm onHalt={halt} />
      {"failure" in last ? null : <Limits status={last.value} />}
      {dialog}
    </>
  )
}
