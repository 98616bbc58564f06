/**
 * The operator's routes: the action log, callers' keys, rate-limit use, the latest requests.
 *
 * They are on the admin listener.
 */
import { ActionId } from "@trigate/domain/actions/ActionRecord"
import { CallerName, Quota, Scope } from "@trigate/domain/Caller"
import { upstreamLabels } from "@trigate/domain/Chain"
import { Address } from "@trigate/domain/encoding/Hex"
import { NotPermitted, Overloaded, QuotaExceeded, Unauthorized } from "@trigate/domain/errors/CallerError"
import { PayloadTooLarge } from "@trigate/domain/errors/RequestError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { Millis } from "@trigate/domain/Time"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** An unanswered signed action, without its bytes, which contain the signature. */
export const UnansweredAction = Schema.Struct({
  id: ActionId,
  state: Schema.Literals(["sent", "unknown"]).annotateKey({
    description: "`sent` while a response may still be received, otherwise `unknown`"
  }),
  openedAt: Millis.annotateKey({ description: "When it was first sent, in milliseconds" }),
  actionType: Schema.String,
  signer: Schema.optionalKey(Address),
  nonce: Millis
}).annotate({ identifier: "UnansweredAction" })
export type UnansweredAction = typeof UnansweredAction.Type

/** Whether an action was removed. */
export const Forgotten = Schema.Struct({
  forgotten: Schema.Boolean.annotateKey({ description: "False if no unanswered action has the ID" })
}).annotate({ identifier: "Forgotten" })

/** The outcome of an action after its bytes were sent again. */
export const ActionResolution = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Landed"), message: Schema.String }),
  Schema.Struct({
    _tag: Schema.tag("Accepted"),
    message: Schema.optionalKey(Schema.String).annotateKey({
      description: "The venue's messages for refused legs of the action"
    })
  }),
  Schema.Struct({ _tag: Schema.tag("Rejected"), message: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("StillUnknown"), message: Schema.String, advice: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("Absent") })
]).annotate({ identifier: "ActionResolution" })
export type ActionResolution = typeof ActionResolution.Type

/** A key of a caller, without the key itself. */
export const CallerKey = Schema.Struct({
  name: CallerName,
  prefix: Schema.String.annotateKey({ description: "The prefix by which logs identify the key" }),
  state: Schema.Literals(["valid", "expired", "revoked"]),
  scope: Schema.optionalKey(Scope).annotateKey({
    description: "The scope of the key; if absent, everything except `admin`"
  }),
  quota: Schema.optionalKey(Quota).annotateKey({ description: "The quota of the caller; unlimited if absent" }),
  createdAt: Millis,
  expiresAt: Schema.optionalKey(Millis),
  revokedAt: Schema.optionalKey(Millis),
  lastUsedAt: Schema.optionalKey(Millis).annotateKey({
    description: "Accurate to the minute; absent for a key file"
  })
}).annotate({ identifier: "CallerKey" })
export type CallerKey = typeof CallerKey.Type

/** All keys. */
export const KeyList = Schema.Struct({
  asked: Schema.Boolean.annotateKey({
    description: "False if the gateway is open; then there are no keys"
  }),
  keys: Schema.Array(CallerKey)
}).annotate({ identifier: "KeyList" })
export type KeyList = typeof KeyList.Type

/** A new key. It is returned only once. */
export const IssuedKey = Schema.Struct({
  key: Schema.RedactedFromValue(Schema.String),
  record: CallerKey
}).annotate({ identifier: "IssuedKey" })
export type IssuedKey = typeof IssuedKey.Type

const Lifetime = Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))

/** The scope, quota and lifetime of a new caller's key. */
export const KeyCreation = Schema.Struct({
  name: CallerName,
  scope: Schema.optionalKey(Scope),
  quota: Schema.optionalKey(Quota),
  lifetime: Lifetime.annotateKey({ description: "Lifetime of the key in milliseconds; unlimited if absent" })
}).annotate({ identifier: "KeyCreation", examples: [Examples.keyCreation] })
export type KeyCreation = typeof KeyCreation.Type

/** The rotation of a caller's key. */
export const KeyRotation = Schema.Struct({
  overlap: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))).annotateKey({
    description: "Milliseconds for which the previous keys remain valid; a day if absent"
  }),
  lifetime: Lifetime.annotateKey({
    description: "Lifetime of the key in milliseconds. Default: the lifetime of the previous key"
  })
}).annotate({ identifier: "KeyRotation", examples: [Examples.keyRotation] })
export type KeyRotation = typeof KeyRotation.Type

/** The selection of a caller's keys to revoke. */
export const KeyRevocation = Schema.Struct({
  prefix: Schema.optionalKey(Schema.String).annotateKey({
    description: "The prefix of the key to revoke; all keys if absent"
  })
}).annotate({ identifier: "KeyRevocation", examples: [{}] })
export type KeyRevocation = typeof KeyRevocation.Type

const Caller = Schema.String.annotate({
  description: "`key:` and a name, or `address:` and an IP address or its network"
})

/** The current use of an upstream's rate limit. */
export const RateLimitUse = Schema.Struct({
  upstream: Schema.Literals(upstreamLabels),
  all: Schema.Finite.annotateKey({
    description: "Weight of the last minute for the official API, request units of the last second for nodes"
  }),
  callers: Schema.Array(Schema.Struct({ caller: Caller, units: Schema.Finite })).annotateKey({
    description: "By caller, largest first; the gateway itself uses the rest of `all`"
  })
}).annotate({ identifier: "RateLimitUse" })
export type RateLimitUse = typeof RateLimitUse.Type

/** A request as recorded in the access log. */
export const NotedRequest = Schema.Struct({
  sequence: Schema.Natural,
  time: Millis.annotateKey({ description: "At the end of the request, in milliseconds" }),
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

/** Maximum number of samples: those of an hour. */
export const maxSamples = 360

const Total = Schema.Finite

/** The main metrics at one time. Counters are totals since the start of the process. */
export const HistorySample = Schema.Struct({
  time: Millis,
  requests: Total.annotateKey({ description: "Requests of callers" }),
  failed: Total.annotateKey({ description: "Requests of callers that failed" }),
  cached: Total.annotateKey({ description: "Reads that were served without an upstream request" }),
  attempts: Total.annotateKey({ description: "Attempts at upstreams" }),
  weightSaved: Total.annotateKey({ description: "Weight that caching and coalescing saved" }),
  weightLeft: Schema.optionalKey(Schema.Finite).annotateKey({
    description: "Weight of the official API available to reads; absent if it is not configured"
  }),
  sockets: Schema.Finite.annotateKey({ description: "Open WebSockets of callers" }),
  deliveries: Total.annotateKey({ description: "Frames of streams that were sent to callers" })
}).annotate({ identifier: "HistorySample" })
export type HistorySample = typeof HistorySample.Type

/** A setting of the running gateway. */
export const SettingValue = Schema.Struct({
  name: Schema.String.annotateKey({ description: "The environment variable" }),
  group: Schema.String,
  meaning: Schema.String,
  needsRestart: Schema.Boolean.annotateKey({ description: "Whether a new value takes effect only after a restart" }),
  default: Schema.String,
  isSecret: Schema.Boolean,
  value: Schema.optionalKey(Schema.String).annotateKey({
    description: "The value as given; absent for a secret, and if the default is in effect"
  }),
  source: Schema.optionalKey(Schema.String).annotateKey({
    description: "The flag, the variable or the member of a file that set it; absent if the default is in effect"
  })
}).annotate({ identifier: "SettingValue" })
export type SettingValue = typeof SettingValue.Type

const Sequence = Schema.String.check(Schema.isPattern(/^[0-9]{1,15}$/u, { expected: "a whole number" })).annotate({
  description: "The `sequence` of the last known request; all if absent",
  examples: [Examples.requestSequence]
}).pipe(
  Schema.decodeTo(Schema.Natural, SchemaTransformation.transform({ decode: Number, encode: String }))
)

const after = { after: Schema.optionalKey(Sequence) }

const name = { name: CallerName.annotate({ identifier: "CallerName", examples: [Examples.keyCreation.name] }) }

const id = { id: ActionId.annotate({ examples: [Examples.actionId] }) }
const errors = [UpstreamUnavailable, NotPermitted, Unauthorized, QuotaExceeded, Overloaded] as const
const changing = [...errors, PayloadTooLarge] as const

export class AdminApi extends HttpApiGroup.make("admin").add(
  HttpApiEndpoint.get("actions", Paths.actions, {
    success: Schema.Array(UnansweredAction),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "List the unanswered signed actions",
    description: "Oldest first, without their bytes, which contain the signatures."
  })),
  HttpApiEndpoint.post("forget", Paths.forgetAction, {
    params: id,
    success: Forgotten,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Remove an action whose outcome you know",
    description: "Nothing is sent, and the nonce stays used."
  })),
  HttpApiEndpoint.post("resolve", Paths.resolveAction, {
    params: id,
    success: ActionResolution,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Send an action again, byte for byte, and determine its outcome",
    description:
      "`Landed`: the first attempt was accepted. `Accepted`: this attempt was. `Rejected`: neither was. `StillUnknown`: the outcome is " +
      "still unknown. `Absent`: no unanswered action has the ID."
  })),
  HttpApiEndpoint.get("keys", Paths.keys, {
    success: KeyList,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The keys of callers",
    description: "In the order of creation, including expired and revoked keys. Only hashes of keys are stored."
  })),
  HttpApiEndpoint.post("createKey", Paths.keys, {
    payload: KeyCreation,
    success: IssuedKey,
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Create the first key of a caller",
    description: "Only this response contains the key. Refused if the caller has a valid key, or if the " +
      "gateway requires no keys: create the first key with `trigate keys create`."
  })),
  HttpApiEndpoint.post("rotateKey", Paths.rotateKey, {
    params: name,
    payload: KeyRotation,
    success: IssuedKey,
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Create another key for a caller",
    description: "It has the same scope and quota. The previous keys remain valid for the overlap."
  })),
  HttpApiEndpoint.post("revokeKeys", Paths.revokeKeys, {
    params: name,
    payload: KeyRevocation,
    success: Schema.Array(CallerKey),
    error: changing
  }).annotateMerge(OpenApi.annotations({
    summary: "Revoke all keys of a caller, or one of them, immediately",
    description: "Returns the revoked keys. Every replica refuses them within seconds."
  })),
  HttpApiEndpoint.get("rateLimits", Paths.rateLimits, {
    success: Schema.Array(RateLimitUse),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Use of the rate limits by caller",
    description: "Only the use by this gateway, even if replicas share their limits. Omits upstreams without a limit."
  })),
  HttpApiEndpoint.get("requests", Paths.requests, {
    query: after,
    success: Schema.Array(NotedRequest),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The last requests of callers",
    description:
      "At most 500, oldest first, without paths and bodies. Recording starts with the first request to this route and " +
      "stops ten seconds after the last one; it covers this gateway only."
  })),
  HttpApiEndpoint.get("history", Paths.history, {
    success: Schema.Array(HistorySample),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The main metrics of the last hour",
    description: `A sample every ${sampleSeconds} seconds, at most ${maxSamples}, oldest first, of this gateway only.`
  })),
  HttpApiEndpoint.get("settings", Paths.settings, {
    success: Schema.Array(SettingValue),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The settings in effect, and their sources",
    description: "Without the values of secrets. Empty for routes that are embedded in another program."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Admin",
  description:
    "The action log, the keys of callers and their requests, for the operator of the gateway: on the admin listener, or on a " +
    "loopback address on the callers' listener"
})) {}
