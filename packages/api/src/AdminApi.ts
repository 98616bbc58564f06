/**
 * The operator's routes: the action log, callers' keys, the use of rate limits, and the latest requests.
 *
 * They are served on the admin listener (a separate port), or on the callers' listener if it has a loopback address.
 */
import { ActionId } from "@trigate/domain/actions/ActionOutcome"
import { HaltTarget, Policies } from "@trigate/domain/actions/Policy"
import { CallerName, Quota, Scope, upstreamLabels } from "@trigate/domain/Caller"
import { Address, Millis } from "@trigate/domain/encoding/Encoding"
import {
  InvalidRequest,
  NotPermitted,
  Overloaded,
  PayloadTooLarge,
  PolicyViolation,
  QuotaExceeded,
  Unauthorized,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./RouteParts.ts"

/** A signed action for which no response was received. Its bytes are omitted, because they contain the signature. */
export const UnansweredAction = Schema.Struct({
  id: ActionId,
  state: Schema.Literals(["sent", "unknown"]).annotateKey({
    description: "`sent` while the response can still arrive, otherwise `unknown`"
  }),
  openedAt: Millis.annotateKey({ description: "When the action was first sent, in milliseconds since the Unix epoch" }),
  actionType: Schema.String,
  signer: Schema.optionalKey(Address),
  nonce: Millis
}).annotate({ identifier: "UnansweredAction" })
export type UnansweredAction = typeof UnansweredAction.Type

/** Whether an action was removed from the list of unanswered actions. */
export const Forgotten = Schema.Struct({
  forgotten: Schema.Boolean.annotateKey({ description: "False if no unanswered action has the requested ID" })
}).annotate({ identifier: "Forgotten" })

/** The outcome of an action after its bytes were sent again. */
export const ActionResolution = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Landed"), message: Schema.String }),
  Schema.Struct({
    _tag: Schema.tag("Accepted"),
    message: Schema.optionalKey(Schema.String).annotateKey({
      description:
        "If the venue accepted the action but refused legs (entries of its batch): the messages for these legs"
    })
  }),
  Schema.Struct({ _tag: Schema.tag("Rejected"), message: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("StillUnknown"), message: Schema.String, advice: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("Absent") })
]).annotate({ identifier: "ActionResolution" })
export type ActionResolution = typeof ActionResolution.Type

/** The description of a caller's key, without the key's text. */
export const CallerKey = Schema.Struct({
  name: CallerName,
  prefix: Schema.String.annotateKey({ description: "The prefix by which logs identify the key" }),
  state: Schema.Literals(["valid", "expired", "revoked"]),
  scope: Schema.optionalKey(Scope).annotateKey({
    description: "The scope of the key; if absent, all operations except `admin`"
  }),
  quota: Schema.optionalKey(Quota).annotateKey({ description: "The quota of the caller; unlimited if absent" }),
  createdAt: Millis,
  expiresAt: Schema.optionalKey(Millis),
  revokedAt: Schema.optionalKey(Millis),
  lastUsedAt: Schema.optionalKey(Millis).annotateKey({
    description: "Time of last use, accurate to the minute; absent if the keys are in a key file"
  })
}).annotate({ identifier: "CallerKey" })
export type CallerKey = typeof CallerKey.Type

/** The response that lists the keys of all callers. */
export const KeyList = Schema.Struct({
  asked: Schema.Boolean.annotateKey({
    description: "Whether the gateway requires keys. If false, the list of keys is empty"
  }),
  keys: Schema.Array(CallerKey)
}).annotate({ identifier: "KeyList" })
export type KeyList = typeof KeyList.Type

/** A newly created key. The key's text is in this response only. */
export const IssuedKey = Schema.Struct({
  key: Schema.RedactedFromValue(Schema.String),
  record: CallerKey
}).annotate({ identifier: "IssuedKey" })
export type IssuedKey = typeof IssuedKey.Type

const Lifetime = Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))

/** The request to create a key for a caller that has no valid key, with the key's scope, quota and lifetime. */
export const KeyCreation = Schema.Struct({
  name: CallerName,
  scope: Schema.optionalKey(Scope),
  quota: Schema.optionalKey(Quota),
  lifetime: Lifetime.annotateKey({ description: "Lifetime of the key in milliseconds; unlimited if absent" })
}).annotate({ identifier: "KeyCreation", examples: [Examples.keyCreation] })
export type KeyCreation = typeof KeyCreation.Type

/** The request to rotate a caller's key. */
export const KeyRotation = Schema.Struct({
  overlap: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))).annotateKey({
    description: "Milliseconds for which the caller's previous keys remain valid; a day if absent"
  }),
  lifetime: Lifetime.annotateKey({
    description: "Lifetime of the new key in milliseconds. Default: the lifetime of the previous key"
  })
}).annotate({ identifier: "KeyRotation", examples: [Examples.keyRotation] })
export type KeyRotation = typeof KeyRotation.Type

/** The request to revoke keys of a caller. */
export const KeyRevocation = Schema.Struct({
  prefix: Schema.optionalKey(Schema.String).annotateKey({
    description: "The prefix of the key to revoke. If absent, all keys of the caller are revoked"
  })
}).annotate({ identifier: "KeyRevocation", examples: [{}] })
export type KeyRevocation = typeof KeyRevocation.Type

const GuardedUse = Schema.Struct({
  account: Address,
  policies: Schema.Array(Schema.String).annotateKey({ description: "The names of the account's policies" }),
  orders: Schema.Natural.annotateKey({ description: "New orders in the last 60 seconds" }),
  reserved: Schema.Natural.annotateKey({
    description: "Actions whose effect the account's state does not show yet, or whose outcome is unknown"
  }),
  losses: Schema.Array(Schema.Struct({ since: Schema.String, zone: Schema.String, loss: Schema.Finite })).annotateKey({
    description: "Losses in USDC since the times of day that policies name; negative for a profit"
  }),
  notional: Schema.Array(Schema.Struct({
    quote: Schema.String,
    open: Schema.Finite.annotateKey({ description: "Notional of the open orders" }),
    total: Schema.Finite.annotateKey({ description: "Notional of all positions if all orders fill" })
  })).annotateKey({ description: "By quote token; empty if no limit needs the account's state" })
}).annotate({ identifier: "GuardedUse" })

/** The guard's policies, the use of their limits by account, the halts, and the latest refusals. */
export const GuardStatus = Schema.Struct({
  policies: Policies,
  version: Schema.String.annotateKey({ description: "A hash of the policies, by which replicas can be compared" }),
  halts: Schema.Array(HaltTarget),
  accounts: Schema.Array(GuardedUse),
  refusals: Schema.Array(Schema.Struct({
    time: Millis,
    caller: Schema.String,
    actionType: Schema.String,
    violation: PolicyViolation
  })).annotateKey({ description: "Newest first, at most 50" })
}).annotate({ identifier: "GuardStatus" })
export type GuardStatus = typeof GuardStatus.Type

/** Whether a halt was ended. */
export const Resumed = Schema.Struct({
  resumed: Schema.Boolean.annotateKey({ description: "False if there was no such halt" })
}).annotate({ identifier: "Resumed" })

const Caller = Schema.String.annotate({
  description: "`key:` and the caller's name, or `address:` and the client's IP address or network"
})

/** The current use of an upstream's rate limit. */
export const RateLimitUse = Schema.Struct({
  upstream: Schema.Literals(upstreamLabels),
  all: Schema.Finite.annotateKey({
    description:
      "For the venue's API, the weight used in the last minute; for nodes, the request units used in the last second"
  }),
  callers: Schema.Array(Schema.Struct({ caller: Caller, units: Schema.Finite })).annotateKey({
    description: "Use by each caller, largest first. The gateway itself used the rest of `all`"
  })
}).annotate({ identifier: "RateLimitUse" })
export type RateLimitUse = typeof RateLimitUse.Type

/** A request as recorded in the access log. */
export const NotedRequest = Schema.Struct({
  sequence: Schema.Natural,
  time: Millis.annotateKey({ description: "When the request ended, in milliseconds since the Unix epoch" }),
  id: Schema.String,
  method: Schema.String,
  route: Schema.String,
  status: Schema.Int,
  milliseconds: Schema.Finite,
  caller: Schema.optionalKey(Caller),
  key: Schema.optionalKey(Schema.String).annotateKey({ description: "Prefix of the caller's key" }),
  operations: Schema.Array(Schema.String),
  error: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "NotedRequest" })
export type NotedRequest = typeof NotedRequest.Type

/** Seconds between two samples of the metrics. */
export const sampleSeconds = 10

/** Maximum number of stored metric samples: those of one hour. */
export const maxSamples = 360

const Total = Schema.Finite

const latency = (share: string) =>
  Schema.optionalKey(Schema.Finite).annotateKey({
    description:
      `Seconds in which ${share} of callers' requests of the last minute were served, as the upper bound of ` +
      "a bucket of `trigate_request_seconds`; absent if there was none"
  })

/** The main metrics at one time. Counters are totals since the process started. */
export const HistorySample = Schema.Struct({
  time: Millis,
  requests: Total.annotateKey({ description: "Number of callers' requests" }),
  failed: Total.annotateKey({ description: "Number of callers' requests that failed" }),
  cached: Total.annotateKey({ description: "Number of reads that were served without an upstream request" }),
  attempts: Total.annotateKey({ description: "Number of requests sent to upstreams, including retries" }),
  weightSaved: Total.annotateKey({ description: "Weight saved by caching and by coalescing equal requests" }),
  weightLeft: Schema.optionalKey(Schema.Finite).annotateKey({
    description:
      "Remaining weight of the venue's API that is available to reads; absent if the venue's API is not configured"
  }),
  p50: latency("half"),
  p95: latency("95 %"),
  p99: latency("99 %"),
  sockets: Schema.Finite.annotateKey({ description: "Number of callers' open WebSockets" }),
  deliveries: Total.annotateKey({ description: "Number of stream frames that were sent to callers" })
}).annotate({ identifier: "HistorySample" })
export type HistorySample = typeof HistorySample.Type

/** All metrics at one time in the last minute. */
export const MinuteSample = Schema.Struct({
  age: Schema.Finite.annotateKey({ description: "Seconds since the sample was taken" }),
  series: Schema.Array(
    Schema.Struct({
      name: Schema.String.annotateKey({ description: "The name in `GET /metrics`" }),
      labels: Schema.Record(Schema.String, Schema.String),
      value: Schema.Finite
    })
  ).annotateKey({ description: "The series whose value is not 0" })
}).annotate({ identifier: "MinuteSample" })
export type MinuteSample = typeof MinuteSample.Type

/** A setting of the running gateway. */
export const SettingValue = Schema.Struct({
  name: Schema.String.annotateKey({ description: "The environment variable" }),
  group: Schema.String,
  meaning: Schema.String,
  needsRestart: Schema.Boolean.annotateKey({ description: "True if a new value takes effect only after a restart" }),
  default: Schema.String,
  isSecret: Schema.Boolean,
  value: Schema.optionalKey(Schema.String).annotateKey({
    description: "The configured value; absent for a secret, and if the default is in effect"
  }),
  source: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "The flag, the environment variable or the configuration-file member that set the value; absent if the default is in effect"
  })
}).annotate({ identifier: "SettingValue" })
export type SettingValue = typeof SettingValue.Type

const Sequence = Schema.String.check(Schema.isPattern(/^[0-9]{1,15}$/u, { expected: "a whole number" })).annotate({
  description:
    "The `sequence` of the last request that the client already has. If absent, all recorded requests are returned",
  examples: [Examples.requestSequence]
}).pipe(
  Schema.decodeTo(Schema.Natural, SchemaTransformation.transform({ decode: Number, encode: String }))
)

const after = { after: Schema.optionalKey(Sequence) }

const name = { name: CallerName.annotate({ identifier: "CallerName", examples: [Examples.keyCreation.name] }) }

const id = { id: ActionId.annotate({ examples: [Examples.actionId] }) }
const errors = [UpstreamUnavailable, NotPermitted, Unauthorized, QuotaExceeded, Overloaded] as const
const changing = [...errors, PayloadTooLarge] as const

/** Declares a route without parameters that changes nothing. */
const read = <const Name extends string, const Path extends `/${string}`, S extends Schema.Top>(
  name: Name,
  path: Path,
  success: S,
  docs: { readonly summary: string; readonly description: string }
) => HttpApiEndpoint.get(name, path, { success, error: errors }).annotateMerge(OpenApi.annotations(docs))

export class AdminApi extends HttpApiGroup.make("admin").add(
  read("actions", Paths.actions, Schema.Array(UnansweredAction), {
    summary: "List the unanswered signed actions",
    description: "Oldest first. The bytes of the actions are omitted, because they contain the signatures."
  }),
  HttpApiEndpoint.post("forget", Paths.forgetAction, {
    params: id,
    success: Forgotten,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Remove an unanswered action whose outcome you know",
    description: "Nothing is sent to the venue. The nonce remains marked as used."
  })),
  HttpApiEndpoint.post("resolve", Paths.resolveAction, {
    params: id,
    success: ActionResolution,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Send an action again, byte for byte, and determine its outcome",
    description:
      "`Landed`: the first attempt was accepted. `Accepted`: this attempt was accepted. `Rejected`: neither attempt was accepted. `StillUnknown`: the outcome is " +
      "still unknown. `Absent`: no unanswered action has the ID."
  })),
  read("keys", Paths.keys, KeyList, {
    summary: "The keys of callers",
    description: "Ordered by creation time, including expired and revoked keys. Only hashes of keys are stored."
  }),
  HttpApiEndpoint.post("createKey", Paths.keys, {
    payload: KeyCreation,
    success: IssuedKey,
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Create a key for a caller that has no valid key",
    description:
      "Only this response contains the key. The request is refused if the caller already has a valid key. It is also " +
      "refused if the gateway requires no keys: in that case, create the gateway's first key with " +
      "`trigate keys create`."
  })),
  HttpApiEndpoint.post("rotateKey", Paths.rotateKey, {
    params: name,
    payload: KeyRotation,
    success: IssuedKey,
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Create another key for a caller",
    description:
      "The new key has the same scope and quota as the previous ones. The previous keys remain valid for `overlap` milliseconds."
  })),
  HttpApiEndpoint.post("revokeKeys", Paths.revokeKeys, {
    params: name,
    payload: KeyRevocation,
    success: Schema.Array(CallerKey),
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Revoke all keys of a caller, or one of them, immediately",
    description: "Returns the revoked keys. Within seconds, every replica refuses requests with these keys."
  })),
  read("guard", Paths.guard, GuardStatus, {
    summary: "The guard: policies, use of their limits, halts and latest refusals",
    description: "Without policies, no action is refused. Accounts are listed after their first guarded action."
  }),
  HttpApiEndpoint.post("haltGuard", Paths.haltGuard, {
    payload: HaltTarget.annotate({ examples: [{ all: true }] }),
    success: GuardStatus,
    error: [...changing, InvalidRequest]
  }).annotateMerge(OpenApi.annotations({
    summary: "Stop the actions of an account, orders in a coin, or all actions",
    description:
      "Applies at once, to every action that is not yet sent, also to accounts without a policy. Cancels and reduce-only orders still pass."
  })),
  HttpApiEndpoint.post("resumeGuard", Paths.resumeGuard, {
    payload: HaltTarget.annotate({ examples: [{ all: true }] }),
    success: Resumed,
    error: [...changing, InvalidRequest]
  }).annotateMerge(OpenApi.annotations({
    summary: "End a halt",
    description: "Takes the same target as the halt."
  })),
  read("rateLimits", Paths.rateLimits, Schema.Array(RateLimitUse), {
    summary: "Use of the rate limits by caller",
    description:
      "Contains only the use by this gateway, even if replicas share their limits. Upstreams without a limit are omitted."
  }),
  HttpApiEndpoint.get("requests", Paths.requests, {
    query: after,
    success: Schema.Array(NotedRequest),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The latest requests of callers",
    description:
      "At most 500, oldest first, without paths and bodies. Only requests to this gateway are recorded. Recording starts with the first request to this route, and " +
      "stops ten seconds after the last request to it."
  })),
  read("history", Paths.history, Schema.Array(HistorySample), {
    summary: "The main metrics of the last hour",
    description:
      `One sample every ${sampleSeconds} seconds, at most ${maxSamples}, oldest first. The samples include only this ` +
      "gateway's traffic."
  }),
  read("minute", Paths.minute, Schema.Array(MinuteSample), {
    summary: "All metrics of the last minute",
    description:
      `One sample every ${sampleSeconds} seconds, oldest first. A client that has just connected can compute rates.`
  }),
  read("settings", Paths.settings, Schema.Array(SettingValue), {
    summary: "The settings in effect, and their sources",
    description: "Secret values are omitted. The list is empty if the routes are embedded in another program."
  })
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Admin",
  description:
    "The operator's routes: the action log, the keys of callers, and the requests of callers. They are served on the " +
    "admin listener, or on the callers' listener if it has a loopback address."
})) {}
