/** The four error groups, each with advice for the caller. */

/** The advice for each group. */
export const errorGroups = {
  "retry-later": "Retry later, after `retryAfter` seconds if present.",
  "fix-request": "Change the request. The same request would be refused again.",
  "fix-setup": "Change a URL, a key or a setting. The request itself may be valid.",
  "outcome-unknown":
    "Find out the outcome of the call before you sign or send anything new. The call may have taken effect."
} as const

/** The group of an error: a retryable error, a wrong request, a wrong configuration, or an unknown outcome. */
export type ErrorGroup = keyof typeof errorGroups

/** An error that declares its group. */
export interface Grouped<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
}
