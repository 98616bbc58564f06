/**
 * Faults put into the code, one at a time, that the simulation must find: `npm run simulate -- --mutants` runs each until
 * a seed fails. Each replaces one text of a source file.
 */

/** A text of a source file, and what replaces it. */
export interface Edit {
  /** The file, from the root of the repository. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** A fault in the code. */
export interface Mutant extends Edit {
  readonly name: string
  /** A second change, where two parts of the code prevent the fault. */
  readonly also?: Edit
  /** The smaller scenario that finds it, which runs many more seeds a second. Default: two replicas of a gateway. */
  readonly scenario?: "once" | "guard" | "deaths" | "streams"
  /** Whether this project had the fault once. */
  readonly isReal?: true
}

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "an action is claimed after it was sent",
    file: "packages/trading/src/actionLog/LoggedAction.ts",
    from: `Effect.acquireUseRelease(log.claim(sending), use, (claim) => claim.settle("unknown"))`,
    to: `Effect.flatMap(use({ isRepeat: false, settle: () => Effect.void }), (a) => Effect.as(log.claim(sending), a))`,
    scenario: "once"
  },
  {
    name: "other content may use a nonce of unknown outcome",
    file: "packages/trading/src/actionLog/LoggedAction.ts",
    from: `(guard.fingerprint ?? entry.fingerprint) === entry.fingerprint &&`,
    to: ``,
    scenario: "once"
  },
  {
    name: "an action can be sent again while it is in flight",
    file: "packages/trading/src/actionLog/LoggedAction.ts",
    from: `return state === undefined || state === "unknown" ? "sent" : undefined`,
    to: `return state === undefined || state === "unknown" || state === "sent" ? "sent" : undefined`,
    scenario: "once"
  },
  {
    name: "a broken connection counts as not sent",
    file: "packages/upstream/src/attempts/Attempts.ts",
    from: `if (sent === "no") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }`,
    to:
      `if (sent === "no" || reason === "Broken") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }`,
    scenario: "once"
  },
  {
    name: "an action goes to the next address after a timeout",
    file: "packages/upstream/src/attempts/Attempts.ts",
    from: `          return yield* outcomeUnknown(target, call, identity, sending.detail)`,
    to:
      `          if (index === targets.length - 1) return yield* outcomeUnknown(target, call, identity, sending.detail)
          lastDetail = sending.detail
          break`,
    scenario: "once"
  },
  {
    name: "an unknown outcome frees the nonce",
    file: "packages/trading/src/Exchange.ts",
    from: `yield* settle(isUnknown ? "unknown" : "released")`,
    to: `yield* settle("released")`,
    scenario: "once"
  },
  {
    name: "a client that leaves interrupts the request to the venue",
    file: "packages/trading/src/Exchange.ts",
    from: `const sent = detached(sendOnce(admitted, requestId))`,
    to: `const sent = sendOnce(admitted, requestId)`,
    scenario: "once"
  },
  {
    name: "an attempt that its client interrupts frees the nonce",
    file: "packages/trading/src/actionLog/LoggedAction.ts",
    from: `(claim) => claim.settle("unknown"))`,
    to: `(claim) => claim.settle("released"))`,
    // nothing interrupts an attempt that is detached from its client
    also: {
      file: "packages/trading/src/Exchange.ts",
      from: `const sent = detached(sendOnce(admitted, requestId))`,
      to: `const sent = sendOnce(admitted, requestId)`
    },
    scenario: "once"
  },
  {
    name: "a refused repeat counts as rejected",
    file: "packages/trading/src/actionLog/LoggedAction.ts",
    from: `return isRepeat ? "unknown" : "rejected"`,
    to: `return "rejected"`
  },
  {
    name: "an order that the venue does not know has never arrived",
    file: "packages/trading/src/actionLog/ActionSettlement.ts",
    from: `order.timestamp >= openedAt - clockTolerance`,
    to: `false`
  },
  {
    name: "orders from before an action are served after it",
    file: "packages/trading/src/Exchange.ts",
    from:
      `if (settlement === "accepted" || settlement === "unknown") yield* changed(admitted, settlement === "accepted")`,
    to: ``
  },
  {
    name: "a replica shows an event, and serves an answer from before it",
    file: "packages/trading/src/accounts/AccountMirror.ts",
    from: `    if (entry.kind === "past") return`,
    to: `    if (entry.kind === "past" || isShared(entry.user)) return`,
    // the writer of the log is a little slow
    also: {
      file: "packages/upstream/src/cache/AccountVersions.ts",
      from: `written(shared.change(signer, slots), undefined)`,
      to: `written(Effect.delay(shared.change(signer, slots), 200), undefined)`
    },
    isReal: true
  },
  {
    name: "probes take no weight",
    file: "packages/upstream/src/attempts/OutlierDetection.ts",
    from: `{ onFailure: () => Effect.undefined, onSuccess: () => probe(address, true) }`,
    to: `{ onFailure: () => probe(address, true), onSuccess: (permits) => (permits.refund(2), probe(address, true)) }`,
    isReal: true
  },
  {
    name: "the weight of an outage is forgotten if it cannot be written",
    file: "packages/upstream/src/limits/RateLimiterShared.ts",
    from: `Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => {`,
    to:
      `Exit.isSuccess(exit) || exit.cause.reasons.some((reason) => reason._tag === "Interrupt") ? Effect.void : Effect.sync(() => {`,
    isReal: true
  },
  {
    name: "each replica uses the whole limit while Redis is away",
    file: "packages/upstream/src/limits/RateLimiterShared.ts",
    from: "part: 1 / (isKnown ? replicas : 2),",
    to: "part: 1,"
  },
  {
    name: "a refund is made twice",
    file: "packages/upstream/src/attempts/Attempts.ts",
    from: `permits.refund(RateLimiter.worstCost(target.label, attempt) - usedBy(attempt, ended))`,
    to: `permits.refund(2 * (RateLimiter.worstCost(target.label, attempt) - usedBy(attempt, ended)))`
  },
  {
    name: "the weight of a request without a response is refunded",
    file: "packages/upstream/src/attempts/Attempts.ts",
    from: `if (outcome === "not_sent") return 0`,
    to: `if (outcome === "not_sent" || outcome === "timeout" || outcome === "broken") return 0`
  },
  {
    name: "fills are told apart by their tid alone, of a second",
    file: "packages/domain/src/streams/AccountSubscriptions.ts",
    from: `const fillKey = ["oid", "tid"] as const`,
    to: `const fillKey = ["time"] as const`,
    // rows with one key are compared by their content, too
    also: {
      file: "packages/upstream/src/streams/Topic.ts",
      from: `return rows.map((row, index) => equal[index] ?? find(row, hasSameContent))`,
      to: `return rows.map((row, index) => equal[index] ?? find(row, () => true))`
    },
    isReal: true,
    scenario: "streams"
  },
  {
    name: "a refill begins at the last row, without overlap",
    file: "packages/upstream/src/internal/streams/TopicConnections.ts",
    from: `const since = (shared.rows.newest?.time ?? begunAt) - clockMargin`,
    to: `const since = (shared.rows.newest?.time ?? begunAt) + 1000`,
    scenario: "streams"
  },
  {
    name: "a silent connection is never noticed",
    file: "packages/upstream/src/streams/SocketTransport.ts",
    from: `if (askedAt !== undefined && millisBetween(askedAt, at) >= answerWithin) {`,
    to: `if (askedAt !== undefined && millisBetween(askedAt, at) >= 1e9) {`,
    scenario: "streams"
  },
  {
    name: "a lost stream is not refilled",
    file: "packages/trading/src/streams/Streams.ts",
    from: `return Effect.map(rowsFrom(start), (rows) => ({`,
    to: `return Effect.map(Effect.as(rowsFrom(start), [] as ReadonlyArray<string>), (rows) => ({`,
    scenario: "streams"
  },
  {
    name: "a resumed stream begins at the newest event instead of the caller's last",
    file: "packages/trading/src/streams/ResumableSubscriber.ts",
    from: "for (const entry of log.after(resumed.seq, user, topic.name)) backlog.push({ entry, topic })",
    to: "for (const entry of log.after(log.head.seq, user, topic.name)) backlog.push({ entry, topic })",
    scenario: "streams"
  },
  {
    name: "a resumed stream repeats the caller's last event",
    file: "packages/trading/src/streams/ResumableSubscriber.ts",
    from: "for (const entry of log.after(resumed.seq, user, topic.name)) backlog.push({ entry, topic })",
    to: "for (const entry of log.after(resumed.seq - 1, user, topic.name)) backlog.push({ entry, topic })",
    scenario: "streams"
  },
  {
    name: "rows that the log has are appended again",
    file: "packages/trading/src/internal/accounts/LogOwnership.ts",
    from: `const rows = earlier.unseen(log.unseen(user, name, entry.rows, kind === "refill"))`,
    to: "const rows = entry.rows",
    scenario: "streams"
  },
  {
    name: "rows that the log has dropped are appended again",
    file: "packages/trading/src/internal/accounts/LogOwnership.ts",
    from: `log.unseen(user, name, entry.rows, kind === "refill")`,
    to: `log.unseen(user, name, entry.rows)`,
    scenario: "streams",
    isReal: true
  },
  {
    name: "a gap is not reported when a position is older than the log",
    file: "packages/trading/src/streams/ResumableSubscriber.ts",
    from: "if (resumed !== undefined && (since === undefined || resumed.seq < since)) withdraw()",
    to: "",
    scenario: "streams"
  },
  {
    name: "the lease of the event log is renewed late",
    file: "packages/trading/src/internal/accounts/AccountRecorder.ts",
    from: `const electEvery = (role: Role): number => role === "reader" ? 250 : 1000`,
    to: `const electEvery = (role: Role): number => role === "reader" ? 250 : 9000`,
    scenario: "streams"
  },
  {
    name: "a replica continues with the log of another epoch",
    file: "packages/trading/src/internal/accounts/LogOwnership.ts",
    from: "if (tail.epoch === epoch && tail.start <= seq) {",
    to: "if (tail.start <= seq) {",
    scenario: "streams"
  },
  {
    name: "events that a store dropped do not count as missing",
    file: "packages/trading/src/internal/accounts/LogOwnership.ts",
    from: "if (!isConsecutive(log.head.seq, tail.entries)) break",
    to: "",
    scenario: "streams"
  },
  {
    name: "an append whose confirmation was lost is appended again",
    file: "packages/simulation/src/stores/EventLogs.ts",
    from: `  if (seq === after + AccountEvents.totalSpan(entries)) return { epoch, seq }
  if (seq !== after) return undefined`,
    to: ``,
    scenario: "streams"
  },
  {
    name: "a query of missed events that fails counts as complete",
    file: "packages/trading/src/internal/accounts/AccountRecorder.ts",
    from: "if (Result.isFailure(loaded)) return { entries: [], isComplete: false }",
    to: "if (Result.isFailure(loaded)) return { entries: [], isComplete: true }",
    scenario: "streams"
  },
  {
    name: "guards of replicas do not see each other's reservations",
    file: "packages/trading/src/guard/GuardedAccounts.ts",
    from: `    if (yield* shared.put(account.address, account.reservations.version, text)) {`,
    to: `    if (Number.isInteger(account.reservations.version) || (yield* shared.put(account.address, 0, text))) {`,
    scenario: "guard"
  },
  {
    name: "a reservation ends with the venue's response",
    file: "packages/trading/src/guard/GuardedAccounts.ts",
    from: `if (settlement === "accepted") change("settled")`,
    to: `if (settlement === "accepted") change("gone")`,
    scenario: "guard"
  },
  {
    name: "a guard uses a state from before another replica ended a reservation",
    file: "packages/trading/src/guard/GuardedAccounts.ts",
    from: `(view?.venueTime ?? 0) < reservations.seen`,
    to: `(view?.venueTime ?? 0) < reservations.seen - 1e12`,
    scenario: "guard"
  },
  {
    name: "orders are netted against an opposite position",
    file: "packages/trading/src/guard/Rules.ts",
    from: `Math.max(Math.max(held, 0) + side.buys, Math.max(-held, 0) + side.sells)`,
    to: `Math.max(Math.abs(held), held + side.buys, side.sells - held)`,
    scenario: "guard"
  },
  {
    name: "a replica that continues for a killed one does not ask the action log",
    file: "packages/trading/src/guard/DeadMansSwitch.ts",
    from: `if (earlier !== undefined) return earlier`,
    to: `if (earlier !== undefined && attempt > 1e9) return earlier`,
    scenario: "deaths"
  },
  {
    name: "no replica continues for a killed one",
    file: "packages/trading/src/guard/DeadMansSwitch.ts",
    from: `else if (quiet > abandonedAfter) yield* claim()`,
    to: `else if (quiet > 1e12) yield* claim()`,
    scenario: "deaths"
  },
  {
    name: "a switch that is armed again looks as old as before",
    file: "packages/trading/src/guard/DeadMansSwitch.ts",
    from: `heartbeats: (found?.heartbeats ?? -1) + 1`,
    to: `heartbeats: 0`,
    scenario: "deaths",
    isReal: true
  },
  {
    name: "a replica does not see the heartbeats that another one noted",
    file: "packages/trading/src/guard/DeadMansSwitch.ts",
    from: `[state, sender, heartbeats,`,
    to: `[state, sender,`,
    scenario: "deaths"
  }
]
