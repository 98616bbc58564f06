/** `trigate check --live`: compares a venue with the queries that this version declares. */
import * as Connection from "@trigate/client/Connection"
import { catalogDate } from "@trigate/domain/actions/Action"
import { type DriftFinding, driftQueries, type DriftQuery, findDrift } from "@trigate/domain/unstable/info/InfoDrift"
import { settings } from "@trigate/server/unstable/settings/Settings"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"

/** The venue differs from the queries that this version declares. */
export class DriftFound extends Schema.TaggedError<DriftFound>()("DriftFound", {
  differing: Schema.Int,
  all: Schema.Int
}) {
  override get message() {
    return `${this.differing} of ${this.all} query types at the venue differ from the catalog of ${catalogDate}`
  }
}

/** The venue did not serve some queries, so that their types are not compared. */
export class CheckIncomplete extends Schema.TaggedError<CheckIncomplete>()("CheckIncomplete", {
  failed: Schema.Int,
  all: Schema.Int
}) {
  override get message() {
    return `${this.failed} of ${this.all} query types could not be compared: the venue did not serve them`
  }
}

const deadline = "10 seconds"

/** The number of consecutive failed queries after which the check ends, because the venue is unreachable. */
const mostFailures = 3

const describe = ({ detail, missing, unknown }: DriftFinding): string =>
  [
    ...(missing.length === 0 ? [] : [`missing: ${missing.join(", ")}`]),
    ...(unknown.length === 0 ? [] : [`unknown: ${unknown.join(", ")}`]),
    ...(detail === "" ? [] : [detail])
  ].join("; ")

const failed = (type: string, detail: string): DriftFinding => ({
  type,
  state: "failed",
  missing: [],
  unknown: [],
  detail
})

/** Sends one query to the venue, without a key of the gateway. */
const sendQuery = ({ own }: Connection.Connection["Service"], query: DriftQuery): Effect.Effect<DriftFinding> =>
  own.post("/info", query.body.text).pipe(
    Effect.timeout(deadline),
    Effect.match({
      onFailure: ({ _tag }) =>
        failed(query.type, _tag === "TimeoutError" ? `no response in ${deadline}` : "no connection"),
      onSuccess: (response) => findDrift(query, response)
    })
  )

/**
 * Sends each query once, and pauses after each so that the check uses at most `weight` per minute. Ends early after
 * {@link mostFailures} consecutive failures. Calls `onFinding` after each query.
 */
export const compareVenue = Effect.fnUntraced(function*<R>(
  send: (query: DriftQuery) => Effect.Effect<DriftFinding, never, R>,
  weight: number,
  onFinding: (finding: DriftFinding, number: number) => Effect.Effect<void>
) {
  const findings: Array<DriftFinding> = []
  let failures = 0
  for (const [index, query] of driftQueries.entries()) {
    const finding = yield* send(query)
    findings.push(finding)
    yield* onFinding(finding, index + 1)
    failures = finding.state === "failed" ? failures + 1 : 0
    if (failures === mostFailures) break
    if (index + 1 < driftQueries.length) yield* Effect.sleep(Duration.minutes(query.weight / weight))
  }
  return findings
})

const differs = ({ state }: DriftFinding): boolean => state === "drifted" || state === "refused"

/** `trigate check`. */
export const command = Command.make("check", {
  live: Output.booleanFlag("live", "Send each declared query once to the venue of --venue"),
  venue: Flag.String("venue").pipe(
    Flag.withMetavar("url"),
    Flag.withFallbackConfig(Config.String(settings.tradingApiUrl.env)),
    Flag.optional,
    Flag.withDescription(
      `URL of the venue's API, or of a gateway (default: the first URL of ${settings.tradingApiUrl.env})`
    )
  ),
  weight: Output.countFlag("weight", 1200).pipe(
    Flag.withDefault(600),
    Flag.withDescription("Maximum rate-limit weight per minute that the check uses, up to 1200 (default: 600)")
  )
}, ({ live, venue, weight }) =>
  Effect.gen(function*() {
    if (!live) {
      return yield* Output.fault(
        "check requires --live; to check the settings and addresses, run trigate serve --check"
      )
    }
    const [address] = Option.match(venue, { onNone: () => [], onSome: (text) => text.split(",") })
    if (address === undefined || address.trim() === "") {
      return yield* Output.fault(`Name the venue with --venue URL or ${settings.tradingApiUrl.env}`)
    }
    const baseUrl = yield* GatewayAccess.parseBaseUrl(address.trim(), "--venue")
    const connection = Connection.make(yield* HttpClient.HttpClient, { baseUrl })
    const all = driftQueries.length
    const total = driftQueries.reduce((sum, query) => sum + query.weight, 0)
    yield* Output.printNotes([
      `check: ${all} queries of the catalog of ${catalogDate} at ${baseUrl.origin}, at most ${weight} of the weight per minute, ` +
      `${Math.ceil(total / weight)} minutes`
    ])
    const findings = yield* compareVenue((query) => sendQuery(connection, query), weight, (finding, number) => {
      const text = describe(finding)
      return Output.printNotes([`${number}/${all} ${finding.type}: ${finding.state}${text === "" ? "" : ` (${text})`}`])
    })
    const differing = findings.filter(differs)
    const compared = findings.filter(({ state }) => state !== "failed").length
    yield* Output.print({
      json: { catalog: catalogDate, venue: baseUrl.origin, findings },
      table: differing.length === 0
        ? `No differences in ${compared} of ${all} query types (catalog of ${catalogDate}).`
        : Output.rows(
          [Output.left("QUERY"), Output.left("STATE"), Output.left("DETAIL")],
          differing.map((finding) => [finding.type, finding.state, describe(finding)])
        )
    })
    if (differing.length > 0) return yield* new DriftFound({ differing: differing.length, all })
    if (compared < all) return yield* new CheckIncomplete({ failed: all - compared, all })
  })).pipe(
    Command.withDescription(
      "Compare a venue with the queries that this version declares, without changing anything: which query types it refuses, and " +
        "which members of its metadata are missing or unknown. The exit code is 0 without differences, 1 with differences, and 5 if the venue did not serve some queries"
    ),
    Command.withShortDescription("Compare a venue with the queries that this version declares"),
    Command.withExamples([
      { command: "trigate check --live --venue https://api.hyperliquid.xyz" },
      { command: "trigate check --live --venue http://127.0.0.1:8080 --json", description: "Through a gateway" }
    ]),
    GatewayAccess.options
  )
