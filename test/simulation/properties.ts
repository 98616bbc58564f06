/** The properties of a run, checked when the system has recovered. */
import type { Attempt, Subscriber } from "./bots.ts"

/** An action that the venue processed. */
export interface Processed {
  readonly body: string
  readonly at: number
  readonly response: string
}

/** The signed content of a body: everything but the signature. */
export const contentOf = (body: string): string => body.replace(/"signature":\{[^}]*\},?/u, "")

export const nonceOf = (body: string): string => /"nonce":(?<nonce>\d+)/u.exec(body)?.groups?.["nonce"] ?? ""

const grouped = <A>(rows: Iterable<A>, keyOf: (row: A) => string): ReadonlyMap<string, ReadonlyArray<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return groups
}

const short = (content: string): string => content.slice(0, 60)

/**
 * Returns what is wrong with the actions that the venue processed, given what the clients know.
 *
 * - A content is processed at most as often as an attempt may have been sent.
 * - A nonce of a signer is used for one content.
 * - An attempt with the venue's response was processed.
 */
export const checkActions = (
  attempts: ReadonlyArray<Attempt>,
  processed: ReadonlyArray<Processed>,
  signerOf: (body: string) => string
): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const arrived = grouped(processed, ({ body }) => contentOf(body))
  const sent = grouped(attempts, ({ body }) => contentOf(body))
  for (const [content, rows] of arrived) {
    const possible = (sent.get(content) ?? []).filter(({ known }) => known !== "refused")
    if (rows.length > possible.length) {
      wrong.push(`sent ${rows.length} times for ${possible.length} attempts that may have been sent: ${short(content)}`)
    }
  }
  for (const [content, rows] of sent) {
    const answered = rows.filter(({ known }) => known === "answered")
    if (answered.length > 0 && !arrived.has(content)) wrong.push(`answered, but never processed: ${short(content)}`)
  }
  const nonces = grouped(arrived.keys(), (content) => `${signerOf(content)}:${nonceOf(content)}`)
  for (const [nonce, contents] of nonces) {
    if (contents.length > 1) wrong.push(`nonce ${nonce} was used for ${contents.length} contents`)
  }
  return wrong
}

/** Returns the attempts without an end, and those that took longer than a deadline, in milliseconds. */
export const checkEnds = (attempts: ReadonlyArray<Attempt>, deadline: number): ReadonlyArray<string> =>
  attempts.flatMap(({ body, from, hasLeft, until }) =>
    until === undefined
      ? [`never answered: ${short(body)}`]
      : !hasLeft && until - from > deadline
      ? [`answered after ${((until - from) / 1000).toFixed(1)} s: ${short(body)}`]
      : []
  )

/** Returns whether the weight of the requests in any minute exceeds a limit. */
export const checkWeight = (
  departures: ReadonlyArray<{ readonly at: number; readonly weight: number }>,
  limit: number
): ReadonlyArray<string> => {
  let sum = 0
  let first = 0
  let most = 0
  let mostAt = 0
  for (const { at, weight } of departures) {
    sum += weight
    for (
      let oldest = departures[first];
      oldest !== undefined && oldest.at <= at - 60_000;
      oldest = departures[++first]
    ) {
      sum -= oldest.weight
    }
    if (sum > most) [most, mostAt] = [sum, at]
  }
  return most > limit ? [`weight ${most} of ${limit} in the minute before ${(mostAt / 1000).toFixed(1)} s`] : []
}

/** A row of the venue's ledger, and its time in milliseconds since the start. */
export interface LedgerRow {
  readonly id: string
  readonly at: number
}

/**
 * Returns what a subscriber missed of the venue's rows without being told of a gap later, and what it received twice or
 * in a wrong order.
 */
export const checkSubscriber = (
  { faults, gaps, name, rows, seen }: Subscriber,
  ledger: ReadonlyArray<LedgerRow>
): ReadonlyArray<string> => {
  const lastGap = gaps.at(-1) ?? 0
  const missed = ledger.filter(({ at, id }) => at > lastGap && !seen.has(id))
  const twice = [...rows].filter(([, count]) => count > 1)
  return [
    ...faults,
    ...missed.slice(0, 1).map(({ at, id }) =>
      `${name} missed ${missed.length} rows since its last gap at ${lastGap.toFixed(0)}, the first is ${id} at ${at}`
    ),
    ...(twice.length > 0 ? [`${name} received ${twice.length} rows twice, the first is ${twice[0]?.[0]}`] : [])
  ]
}

/** The state of an action according to a gateway; `missing` if its log does not have the action. */
export interface Recorded {
  readonly signer: string
  readonly nonce: string
  readonly state: string
}

/**
 * Returns where the action log of the gateways and the venue differ. Every outcome must be known, since each order has a
 * client order ID and has expired.
 */
export const checkOutcomes = (
  recorded: ReadonlyArray<Recorded>,
  processed: ReadonlyArray<Processed>,
  attempts: ReadonlyArray<Attempt>
): ReadonlyArray<string> =>
  recorded.flatMap(({ nonce, signer, state }) => {
    const own = attempts.filter((attempt) => attempt.signer === signer && String(attempt.nonce) === nonce)
    const bodies = new Set(own.map(({ body }) => body))
    const isPlaced = processed.some(({ response, body }) => bodies.has(body) && /"(?:resting|filled)"/u.test(response))
    const named = `${signer}:${nonce}`
    switch (state) {
      case "accepted":
        return isPlaced ? [] : [`${named} is accepted in the log, and the venue has not placed it`]
      case "rejected":
      case "neverArrived":
        return isPlaced ? [`${named} is ${state} in the log, and the venue has placed it`] : []
      case "missing":
        return processed.some(({ body }) => bodies.has(body))
          ? [`${named} is not in the log, and the venue processed it`]
          : []
      default:
        return [`${named} is still ${state}`]
    }
  })
