/** The four error groups, by what a caller should do. */

/** The advice for each group. */
export const errorGroups = {
  "retry-later": "Try again later, after `retryAfter` seconds if they are given.",
  "fix-request": "Change the request. The same one would be refused again.",
  "fix-setup": "Change an address, a key or a setting. The request may be right.",
  "outcome-unknown": "Find out the outcome of the call before you sign or send anything new. It may have taken effect."
} as const

/** The group of an error, by what a caller should do. */
export type ErrorGroup = keyof typeof errorGroups

/** An error that declares its group. */
export interface Grouped<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
}
