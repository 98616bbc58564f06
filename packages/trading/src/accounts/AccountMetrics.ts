/** The metrics of watched accounts (accounts whose events the gateway logs). */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

export const metrics = {
  accountsWatched: gauge("trigate_accounts_watched", "Accounts whose events are logged"),
  accountsRefilling: gauge(
    "trigate_accounts_refilling",
    "Watched accounts whose missed events are not yet completely queried"
  ),
  accountsUnrecorded: gauge(
    "trigate_accounts_unrecorded",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS`, and others whose log had begun, whose events this process does not receive"
  ),
  accountEpochsEnded: counter(
    "trigate_account_epochs_ended_total",
    "Gaps in accounts' event logs that queries could not fill; streams cannot resume across these gaps"
  ),
  accountComparisons: counter(
    "trigate_account_comparisons_total",
    "Comparisons of the streams of watched accounts with queries, by outcome: `equal`, `drift`, `changing` if " +
      "the account changed during the comparison, or `failed`",
    ["outcome"]
  ),
  accountAgentsExpiring: gauge(
    "trigate_account_agents_expiring",
    "Agents (API wallets) that expire within a time, according to this process's latest query about `TRIGATE_WATCH_ACCOUNTS`",
    ["within"]
  ),
  accountChecksFailing: gauge(
    "trigate_account_checks_failing",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` whose latest query for agents (`extraAgents`) or for actions left " +
      "(`userRateLimit`) failed, by operation",
    ["operation"]
  ),
  accountsLowOnActions: gauge(
    "trigate_accounts_low_on_actions",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` that have less than a tenth of their granted actions left"
  )
}
