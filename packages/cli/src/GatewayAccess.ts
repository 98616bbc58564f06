/** The gateway that a command asks: the option `--gateway`, the connection, and errors that say what to do if none answers. */
import * as Connection from "@trigate/client/Connection"
import { unwrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import {
  type UpstreamError,
  UpstreamMalformed,
  UpstreamTimeout,
  UpstreamUnavailable
} from "@trigate/domain/errors/UpstreamError"
import { commandLine } from "@trigate/server/settings/Settings"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { flow } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fault, type UsageFault } from "./Input.ts"
import { AsJson } from "./Output.ts"

const defaultAddress = "http://127.0.0.1:8080"

/** The option `--gateway`. */
export const gatewayFlag = Flag.String("gateway").pipe(
  Flag.withMetavar("url"),
  Flag.withFallbackConfig(Config.String(commandLine.gatewayUrl)),
  Flag.withDefault(defaultAddress),
  Flag.withDescription(`Gateway to ask (else ${commandLine.gatewayUrl}, else ${defaultAddress})`)
)

const Gateway = GlobalFlag.Setting("gateway")({ flag: gatewayFlag })

/** Reads the address of a gateway: http or https, no query. */
export const baseUrlOf = (text: string): Effect.Effect<URL, UsageFault> => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/u.test(url.protocol) && url.search === ""
    ? Effect.succeed(url)
    // the message does not quote it: it may hold an endpoint key
    : Effect.fail(fault(`--gateway (or ${commandLine.gatewayUrl}) takes an http(s) URL without query`))
}

/** How long an answer may take, in milliseconds: longer than the gateway's own deadlines, so that its error comes first. */
export const maxWait = 40_000

/** The way to the gateway. */
export interface Access {
  readonly connection: Connection.Connection["Service"]
  /** Scheme, host and port, without the path: it may hold an endpoint key. */
  readonly origin: string
  /** Why the last call could not connect: the system's code, or a text without one; nothing if it did. */
  readonly unreachable: MutableRef.MutableRef<string | undefined>
}

/** The first code that a failure or one of its causes carries, such as `ENOTFOUND`. */
const codeOf = (failure: unknown): string => {
  if (Predicate.hasProperty(failure, "code") && Predicate.isString(failure.code)) return failure.code
  return Predicate.hasProperty(failure, "cause") ? codeOf(failure.cause) : ""
}

const advice = "start one with trigate serve, or name another with --gateway"

const certificate = "its TLS certificate is not trusted"

/** What a code means for somebody who cannot connect. */
const reasons: { readonly [code: string]: string } = {
  ENOTFOUND: "there is no such host name",
  EAI_AGAIN: "its host name cannot be looked up now",
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was closed",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  EHOSTUNREACH: "there is no route to it",
  ENETUNREACH: "there is no route to it",
  CERT_HAS_EXPIRED: "its TLS certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its TLS certificate is for another host name",
  DEPTH_ZERO_SELF_SIGNED_CERT: certificate,
  SELF_SIGNED_CERT_IN_CHAIN: certificate,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: certificate,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: certificate,
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS; try http://",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS; try http://"
}

const unreachableAt = (origin: string, code: string): string => {
  const reason = reasons[code] ?? code
  return `No gateway answers at ${origin}${reason === "" ? "" : ` (${reason})`}; ${advice}`
}

/** The caller's key for the gateway, from the environment alone: every process of the machine can see arguments. */
const keyOfEnvironment = Config.Redacted(commandLine.gatewayKey).pipe(
  Config.option,
  Effect.map(Option.filter((key) => Redacted.value(key) !== "")),
  Effect.orDie
)

/** The gateway at an address, with the caller's key if there is one. */
const optionsFor = (baseUrl: URL): Effect.Effect<Connection.Options> =>
  Effect.map(keyOfEnvironment, (key) => ({ baseUrl, ...(Option.isSome(key) ? { key: key.value } : {}) }))

/** The connection to a gateway over a client, with the caller's key if there is one. */
export const connectionTo = (http: HttpClient.HttpClient, baseUrl: URL) =>
  Effect.map(optionsFor(baseUrl), (options) => Connection.make(http, options))

/** The way to the gateway at an address. Sends nothing yet. */
export const connectTo = Effect.fnUntraced(function*(address: string) {
  const url = yield* baseUrlOf(address)
  const unreachable = MutableRef.make<string | undefined>(undefined)
  const http = HttpClient.tapError(
    yield* HttpClient.HttpClient,
    (error) => Effect.sync(() => MutableRef.set(unreachable, codeOf(error)))
  )
  return { connection: yield* connectionTo(http, url), origin: url.origin, unreachable } satisfies Access
})

/** The way to the gateway that the options name. Sends nothing yet. */
export const connect = Effect.flatMap(Gateway, connectTo)

/** Where the streams of the gateway are that the options name. */
export const streamOptions = Gateway.pipe(Effect.flatMap(baseUrlOf), Effect.flatMap(optionsFor))

const isUnavailable = Schema.is(UpstreamUnavailable)
const isMalformed = Schema.is(UpstreamMalformed)

/** Says what to do if no gateway answers, or if what answers is not a gateway. */
const inWords = <E>(error: E, { origin, unreachable }: Access): E | UpstreamError => {
  const reason: unknown = unwrapReason(error)
  if (isUnavailable(reason) && reason.upstream === Connection.label) {
    const code = MutableRef.get(unreachable)
    return wrapReason(
      new UpstreamUnavailable({
        upstream: reason.upstream,
        attempts: reason.attempts,
        detail: code === undefined ? `${reason.message} (${origin})` : unreachableAt(origin, code),
        ...(reason.retryAfter === undefined ? {} : { retryAfter: reason.retryAfter })
      })
    )
  }
  return isMalformed(reason) && reason.upstream === Connection.label
    ? wrapReason(
      new UpstreamMalformed({
        upstream: reason.upstream,
        issue: reason.issue,
        detail: `What answers at ${origin} is no gateway (${reason.issue}); name another with --gateway`
      })
    )
    : error
}

const tooLate = ({ origin }: Access): UpstreamError =>
  wrapReason(
    new UpstreamTimeout({
      upstream: Connection.label,
      deadline: maxWait,
      detail: `The gateway at ${origin} did not answer within ${maxWait / 1000} seconds`
    })
  )

/** Makes calls over a way, for at most {@link maxWait}. */
export const over = Effect.fnUntraced(function*<A, E, R>(access: Access, calls: Effect.Effect<A, E, R>) {
  MutableRef.set(access.unreachable, undefined)
  return yield* calls.pipe(
    Effect.provideService(Connection.Connection, access.connection),
    Effect.mapError((error) => inWords(error, access)),
    Effect.timeoutOrElse({
      duration: maxWait,
      orElse: () => Effect.fail(tooLate(access))
    })
  )
})

/** Takes what a gateway sends over a way, each part of it for at most {@link maxWait}. */
export const streamOver = <A, E, R>(access: Access, parts: Stream.Stream<A, E, R>) =>
  parts.pipe(
    Stream.provideService(Connection.Connection, access.connection),
    Stream.mapError((error) => inWords(error, access)),
    Stream.timeoutOrElse({ duration: maxWait, orElse: () => Stream.fail(tooLate(access)) })
  )

/** Makes calls to the gateway that the options name. */
export const ask = <A, E, R>(calls: Effect.Effect<A, E, R>) => Effect.flatMap(connect, (access) => over(access, calls))

/** Gives a command the options `--gateway` and `--json`, and an HTTP client. */
export const options = flow(Command.withGlobalFlags([Gateway, AsJson]), Command.provide(FetchHttpClient.layer))
