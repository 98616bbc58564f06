/** The panel of an account: worth, margin, action budget and agents, and its positions, orders and fills as they change. */
import * as Info from "@trigate/client/Info"
import { Address } from "@trigate/domain/encoding/Encoding"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { useEffect, useState } from "preact/hooks"
import * as Gateway from "../Gateway.ts"
import { readiness } from "../Live.ts"
import * as Table from "../Table.tsx"
import * as AccountState from "./AccountState.tsx"

const isAddress = Schema.is(Address)

/** Returns the account in the page's URL. Default: the sandbox's trader in a sandbox, otherwise an empty string. */
const wantedUser = (): string =>
  Gateway.place.value.params["of"] ?? (readiness.value?.sandbox === true ? trader.address : "")

/** Queries the agents and the action budget, which change slowly and whose queries cost API weight. */
const slow = (user: Address) =>
  Effect.all({ budget: Info.userRateLimit({ user }), agents: Info.extraAgents({ user }) }, { concurrency: "unbounded" })

type Slow = Gateway.CallResult<Effect.Success<ReturnType<typeof slow>>>

const day = 86_400_000

/**
 * The action budget (the actions that the venue still allows an account) is displayed as low if less than this fraction
 * of its maximum is left. An account without budget can send only one action every ten seconds.
 */
const lowBudget = 0.1

const Limits = ({ found }: { readonly found: Slow }) => {
  if ("failure" in found) return <p class="card bad" role="alert">{found.failure}</p>
  const { agents, budget: { nRequestsCap, nRequestsUsed } } = found.value
  const left = Math.max(0, nRequestsCap - nRequestsUsed)
  const isLow = left < nRequestsCap * lowBudget
  return (
    <div class="pair">
      <section class="card" aria-labelledby="budget-title">
        <h2 id="budget-title">Action budget</h2>
        <p class="figure">
          <meter
            min={0}
            max={nRequestsCap}
            low={nRequestsCap * lowBudget}
            value={left}
            aria-labelledby="budget-title"
          />
          {Table.count(left)}
        </p>
        <p class={isLow ? "bad" : "muted"}>
          {isLow ? "Low: " : ""}
          {Table.count(left)} of {Table.count(nRequestsCap)} actions left; each traded dollar adds one.
        </p>
      </section>
      <Table.Table
        title="Agents"
        columns={["Name", "Address", "Valid until (UTC)"]}
        empty="No named agents. An API wallet that the account approves under a name appears here."
        rows={agents.map(({ address, name, validUntil }) => ({
          key: address,
          cells: [
            name,
            <code key="address" title={address}>{Table.short(address)}</code>,
            <span key="until" class={validUntil - Gateway.now() < 7 * day ? "bad" : ""}>
              {Table.instant(validUntil)}
            </span>
          ]
        }))}
      />
    </div>
  )
}

/** The console's panel of an account. */
export const Account = () => {
  const user = wantedUser()
  const [found, setFound] = useState<Slow | undefined>(undefined)
  const hasKey = Gateway.hasKey.value
  useEffect(() => {
    setFound(undefined)
    if (!isAddress(user)) return undefined
    void Gateway.run(slow(user)).then(setFound)
    return AccountState.follow(user)
  }, [user, hasKey])
  const summary = AccountState.current.value?.perpetuals
  return (
    <>
      <section class="card" aria-label="Account">
        <form class="row" onSubmit={(event) => Gateway.go("account", { of: Table.formTexts(event)["of"] ?? "" })}>
          <label class="wide">
            Address{" "}
            <input
              name="of"
              defaultValue={user}
              key={user}
              required
              placeholder="0x…"
              spellcheck={false}
              pattern="0x[0-9a-fA-F]{40}"
            />
          </label>
          <button type="submit">Show</button>
        </form>
        {summary === undefined ? null : (
          <dl class="tiles">
            {Object.entries({
              "Account value": summary.marginSummary.accountValue,
              "Margin used": summary.marginSummary.totalMarginUsed,
              "Withdrawable": summary.withdrawable
            }).map(([name, value]) => (
              <Table.Tile key={name} name={name} value={Table.fixed(Number(value))} note="USDC" />
            ))}
          </dl>
        )}
      </section>
      {isAddress(user)
        ? (
          <>
            <AccountState.AccountTables />
            {found === undefined ? null : <Limits found={found} />}
          </>
        )
        : <p class="muted">Enter the address of an account of the venue.</p>}
    </>
  )
}
