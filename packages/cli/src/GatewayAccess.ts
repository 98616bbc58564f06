/** The gateway that a command asks: the option `--gateway`, the connection, and errors that say what to do if none answers. */
import * as Connection from "@trigate/client/Connection"
import { commandLine } from "@trigate/domain/Settings"
import { UpstreamMalformed, UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { flow } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as MutableRef from "effect/MutableRef"
import * as Schema from "effect/Schema"
import { fault, type UsageFault } from "./Input.ts"
import { AsJson } from "./Output.ts"

/** The option `--gateway`. */
export const gatewayFlag = Flag.String("gateway").pipe(
  Flag.withMetavar("url"),
  Flag.withFallbackConfig(Config.String(commandLine.gatewayUrl)),
  Flag.withDefault("http://127.0.0.1:8080"),
  Flag.withDescription(`Gateway to ask (else ${commandLine.gatewayUrl}, else http://127.0.0.1:8080)`)
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
  /** Whether the last call could not connect. */
  readonly unreachable: MutableRef.MutableRef<boolean>
}

/** The way to the gateway that the options name. Sends nothing yet. */
export const connect = Effect.gen(function*() {
  const url = yield* baseUrlOf(yield* Gateway)
  const unreachable = MutableRef.make(false)
  const http = HttpClient.tapError(
    yield* HttpClient.HttpClient,
    () => Effect.sync(() => MutableRef.set(unreachable, true))
  )
  return { connection: Connection.make(http, { baseUrl: url }), origin: url.origin, unreachable } satisfies Access
})

const isUnavailable = Schema.is(UpstreamUnavailable)
const isMalformed = Schema.is(UpstreamMalformed)

/** Says what to do if no gateway answers, or if what answers is no gateway. */
const inWords = <E>(error: E, { origin, unreachable }: Access): E | UpstreamMalformed | UpstreamUnavailable => {
  if (isUnavailable(error) && error.upstream === Connection.label) {
    return new UpstreamUnavailable({
      upstream: error.upstream,
      attempts: error.attempts,
      detail: MutableRef.get(unreachable)
        ? `No gateway answers at ${origin}; start one with trigate serve, or name another with --gateway`
        : `${error.message} (${origin})`,
      ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter })
    })
  }
  return isMalformed(error) && error.upstream === Connection.label
    ? new UpstreamMalformed({
      upstream: error.upstream,
      issue: error.issue,
      detail: `What answers at ${origin} is no gateway (${error.issue}); name another with --gateway`
    })
    : error
}

/** Makes calls over a way, for at most {@link maxWait}. */
export const over = Effect.fnUntraced(function*<A, E, R>(access: Access, calls: Effect.Effect<A, E, R>) {
  MutableRef.set(access.unreachable, false)
  return yield* calls.pipe(
    Effect.provideService(Connection.Connection, access.connection),
    Effect.mapError((error) => inWords(error, access)),
    Effect.timeoutOrElse({
      duration: maxWait,
      orElse: () =>
        Effect.fail(
          new UpstreamTimeout({
            upstream: Connection.label,
            deadline: maxWait,
            detail: `The gateway at ${access.origin} did not answer within ${maxWait / 1000} seconds`
          })
        )
    })
  )
})

/** Makes calls to the gateway that the options name. */
export const ask = <A, E, R>(calls: Effect.Effect<A, E, R>) => Effect.flatMap(connect, (access) => over(access, calls))

/** Gives a command the options `--gateway` and `--json`, and an HTTP client. */
export const options = flow(Command.withGlobalFlags([Gateway, AsJson]), Command.provide(FetchHttpClient.layer))
