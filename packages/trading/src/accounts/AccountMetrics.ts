/** The metrics of watched accounts. */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

export const metrics = {
  accountsWatched: gauge("trigate_accounts_watched", "Accounts whose events are logged"),
  accountsRefilling: gauge(
    "trigate_accounts_refilling",
    "Watched accounts whose missed events are being queried, or wait for the rate limit"
  ),
  accountEpochsEnded: counter(
    "trigate_account_epochs_ended_total",
    "Gaps in the event logs of accounts that could not be refilled; streams cannot resume across them"
  ),
  accountComparisons: counter(
    "trigate_account_comparisons_total",
    "Comparisons of the streams of watched accounts with queries, by outcome: `equal`, `drift`, `changing` if " +
      "the account changed during the comparison, or `failed`",
    ["outcome"]
  ),
  accountAgentsExpiring: gauge(
    "trigate_account_agents_expiring",
    "Agents of the accounts of `TRIGATE_WATCH_ACCOUNTS` that expire within a time, as of this process's last query",
    ["within"]
  ),
  accountChecksFailing: gauge(
    "trigate_account_checks_failing",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` whose agents (`extraAgents`) or actions left (`userRateLimit`) could not be " +
      "read by the last query, by operation",
    ["operation"]
  ),
  accountsLowOnActions: gauge(
    "trigate_accounts_low_on_actions",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` that have less than a tenth of their granted actions left"
  )
}
