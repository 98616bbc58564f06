/**
 * Access to the gateway that a command calls: the option `--gateway`, the connection, and advice if the gateway is
 * unreachable.
 */
import * as Connection from "@trigate/client/Connection"
import { notJson } from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import { commandLine } from "@trigate/server/unstable/settings/Settings"
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
import { AsJson, fault, type UsageFault } from "./Output.ts"

const defaultAddress = "http://127.0.0.1:8080"

/** The option `--gateway`. */
export const gatewayFlag = Flag.String("gateway").pipe(
  Flag.withMetavar("url"),
  Flag.withFallbackConfig(Config.String(commandLine.gatewayUrl)),
  Flag.withDefault(defaultAddress),
  Flag.withDescription(`URL of the gateway (default: ${commandLine.gatewayUrl}, or ${defaultAddress})`)
)

/** The URL of the gateway for commands without the option: that of the environment, or the default. */
export const usualAddress = Effect.orDie(Config.withDefault(Config.String(commandLine.gatewayUrl), defaultAddress))

/** The setting of {@link gatewayFlag} that the calls of a command use. */
export const Gateway = GlobalFlag.Setting("gateway")({ flag: gatewayFlag })

/** Parses the URL that a flag names: http or https, without a query. */
export const parseBaseUrl = (
  text: string,
  flag = `--gateway (or ${commandLine.gatewayUrl})`
): Effect.Effect<URL, UsageFault> => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/u.test(url.protocol) && url.search === ""
    ? Effect.succeed(url)
    // the message does not quote the URL, which can contain an endpoint key
    : Effect.fail(fault(`${flag} must be an http(s) URL without a query`))
}

/** Timeout of a call in milliseconds: longer than the gateway's own deadlines, so that the gateway's error arrives first. */
export const maxWait = 40_000

/** A connection to a gateway, with the result of the latest attempt to connect. */
export interface Access {
  readonly connection: Connection.Connection["Service"]
  /** Scheme, host and port, without the path, which can contain an endpoint key. */
  readonly origin: string
  /**
   * The system's error code if the latest call could not connect; an empty string if the error has no code. `undefined`
   * if the call connected.
   */
  readonly unreachable: MutableRef.MutableRef<string | undefined>
}

/** Returns the first error code in a failure or its causes, such as `ENOTFOUND`. */
const findCode = (failure: unknown): string => {
  if (Predicate.hasProperty(failure, "code") && Predicate.isString(failure.code)) return failure.code
  return Predicate.hasProperty(failure, "cause") ? findCode(failure.cause) : ""
}

const advice = "start one with trigate serve, or name another with --gateway"

const certificate = "its TLS certificate is not trusted"

/** Explanations of connection error codes. */
const reasons: { readonly [code: string]: string } = {
  ENOTFOUND: "the host name does not exist",
  EAI_AGAIN: "its host name cannot be resolved now",
  ECONNREFUSED: "no program listens on the port",
  ECONNRESET: "the connection was closed",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  EHOSTUNREACH: "the host is unreachable",
  ENETUNREACH: "the network is unreachable",
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
  return `No gateway responds at ${origin}${reason === "" ? "" : ` (${reason})`}; ${advice}`
}

/** The caller's key, from the environment only: other processes of the machine can see arguments. */
const keyOfEnvironment = Config.Redacted(commandLine.gatewayKey).pipe(
  Config.option,
  Effect.map(Option.filter((key) => Redacted.value(key) !== "")),
  Effect.orDie
)

/** Returns the connection options for a URL, with the caller's key if there is one. */
const optionsFor = (baseUrl: URL): Effect.Effect<Connection.Options> =>
  Effect.map(keyOfEnvironment, (key) => ({ baseUrl, ...(Option.isSome(key) ? { key: key.value } : {}) }))

/** Makes the connection to a gateway through an HTTP client, with the caller's key if there is one. */
export const connectionTo = (http: HttpClient.HttpClient, baseUrl: URL) =>
  Effect.map(optionsFor(baseUrl), (options) => Connection.make(http, options))

/** Makes the {@link Access} to the gateway at a URL. Sends nothing yet. */
export const connectTo = Effect.fnUntraced(function*(address: string) {
  const url = yield* parseBaseUrl(address)
  const unreachable = MutableRef.make<string | undefined>(undefined)
  const http = HttpClient.tapError(
    yield* HttpClient.HttpClient,
    (error) => Effect.sync(() => MutableRef.set(unreachable, findCode(error)))
  )
  return { connection: yield* connectionTo(http, url), origin: url.origin, unreachable } satisfies Access
})

/** Makes the {@link Access} to the gateway that `--gateway` names. Sends nothing yet. */
export const connect = Effect.flatMap(Gateway, connectTo)

/** The stream options for the gateway that `--gateway` names. */
export const streamOptions = Gateway.pipe(Effect.flatMap(parseBaseUrl), Effect.flatMap(optionsFor))

const isUnavailable = Schema.is(GatewayError.UpstreamUnavailable)
const isMalformed = Schema.is(GatewayError.UpstreamMalformed)

/** Adds advice to an error if no gateway responds, or if the server's own response is not that of a gateway. */
const withAdvice = <E>(error: E, { origin, unreachable }: Access): E | GatewayError.UpstreamError => {
  const reason: unknown = GatewayError.unwrapReason(error)
  if (isUnavailable(reason) && reason.upstream === Connection.label) {
    const code = MutableRef.get(unreachable)
    return GatewayError.wrapReason(
      new GatewayError.UpstreamUnavailable({
        upstream: reason.upstream,
        attempts: reason.attempts,
        detail: code === undefined ? `${reason.message} (${origin})` : unreachableAt(origin, code),
        ...(reason.retryAfter === undefined ? {} : { retryAfter: reason.retryAfter })
      })
    )
  }
  if (!isMalformed(reason) || reason.upstream !== Connection.label) return error
  const { issue, upstream } = reason
  const detail = issue === notJson.message
    ? `${origin} is not a Trigate gateway (${issue}); name another with --gateway`
    : `The response of ${origin} has another form than this version of trigate expects (${issue}); ` +
      "use the version of the gateway, or name another gateway with --gateway"
  return GatewayError.wrapReason(new GatewayError.UpstreamMalformed({ upstream, issue, detail }))
}

const tooLate = ({ origin }: Access): GatewayError.UpstreamError =>
  GatewayError.wrapReason(
    new GatewayError.UpstreamTimeout({
      upstream: Connection.label,
      deadline: maxWait,
      detail: `The gateway at ${origin} did not respond within ${maxWait / 1000} seconds`
    })
  )

/** Makes calls to the gateway of an {@link Access}. Fails if the calls take longer than {@link maxWait} in total. */
export const over = Effect.fnUntraced(function*<A, E, R>(access: Access, calls: Effect.Effect<A, E, R>) {
  MutableRef.set(access.unreachable, undefined)
  return yield* calls.pipe(
    Effect.provideService(Connection.Connection, access.connection),
    Effect.mapError((error) => withAdvice(error, access)),
    Effect.timeoutOrElse({
      duration: maxWait,
      orElse: () => Effect.fail(tooLate(access))
    })
  )
})

/** Reads a stream from the gateway of an {@link Access}. Each item of the stream must arrive within {@link maxWait}. */
export const streamOver = <A, E, R>(access: Access, parts: Stream.Stream<A, E, R>) =>
  parts.pipe(
    Stream.provideService(Connection.Connection, access.connection),
    Stream.mapError((error) => withAdvice(error, access)),
    Stream.timeoutOrElse({ duration: maxWait, orElse: () => Stream.fail(tooLate(access)) })
  )

/** Makes calls to the gateway that `--gateway` names. */
export const send = <A, E, R>(calls: Effect.Effect<A, E, R>) => Effect.flatMap(connect, (access) => over(access, calls))

/** Adds the options `--gateway` and `--json`, and an HTTP client, to a command. */
export const options = flow(Command.withGlobalFlags([Gateway, AsJson]), Command.provide(FetchHttpClient.layer))
