/**
 * Divides a rate limit among the callers that use it (holders).
 *
 * Three quarters of the limit are divided into equal shares. A holder is allowed to exceed its share by the unused part
 * of the three quarters. The remaining quarter is reserved for holders within their share, so that a new holder finds
 * capacity immediately.
 */

/** Returns the units that callers (holders) can use above their shares: three quarters of the limit. */
export const lendable = (limit: number): number => limit - Math.floor(limit / 4)

/** Returns the equal share of one caller (holder) in a rate limit; `holders` is the number of holders. */
export const equalShare = (limit: number, holders: number): number => lendable(limit) / holders

/** Returns the maximum units of one caller (holder) while the other holders use `others` units in total. */
export const shareCap = (limit: number, holders: number, others: number): number =>
  Math.max(equalShare(limit, holders), lendable(limit) - others)
