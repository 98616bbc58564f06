/**
 * Sends the calls of declared operations: deadlines over the whole answer, failover for reads, the once rule for the rest.
 *
 * The method class is in the type: `read` takes read operations only and may try every address; `once` takes once
 * operations only, moves to the next address only while it is certain that nothing was sent, and afterwards fails with
 * `OutcomeUnknown`. No other way out exists.
 */
import { malformed } from "@trigate/domain/Answer"
import { resendAdvice } from "@trigate/domain/ExchangeOperations"
import * as JsonText from "@trigate/domain/JsonText"
import type { MethodClass, Operation } from "@trigate/domain/Operation"
import * as Relayed from "@trigate/domain/Relayed"
import type { OnceFailure, ReadFailure } from "@trigate/domain/TransportFailure"
import { OutcomeUnknown, UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as CallMetrics from "./CallMetrics.ts"
import type { Target } from "./Upstream.ts"
import { deadline } from "./UpstreamConfig.ts"
import { Wire } from "./Wire.ts"
import type { WireAnswer, WireError } from "./Wire.ts"

/** Any operation of one method class. */
export interface OperationOf<Class extends MethodClass> extends Pick<Operation, "name" | "cost"> {
  readonly class: Class
  readonly refusal?: { readonly matches: (answer: Relayed.Relayed) => boolean }
}

/** What to send: a body means POST, none means GET. */
export interface Outgoing {
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
  readonly body: Uint8Array | undefined
}

/** What an unknown outcome has to be told with: who signed, and under which nonce. */
export interface OnceIdentity {
  readonly nonce?: number
  readonly signer?: `0x${string}`
}

/** Bounds of every call. */
export interface Options {
  /** Whole-call deadline of a read, over all addresses; 10 seconds when not given. */
  readonly readDeadline?: Duration.Input
  /** Whole-call deadline of a once call; 20 seconds when not given. */
  readonly onceDeadline?: Duration.Input
  /** Bytes of answer accepted; 16 MiB when not given (the longest documented answer is 700 KB). */
  readonly maxAnswerBytes?: number
}

/** Sends calls of declared operations. */
export class Calls extends Context.Service<Calls, {
  readonly read: (operation: OperationOf<"read">, outgoing: Outgoing) => Effect.Effect<Relayed.Relayed, ReadFailure>
  readonly once: (
    operation: OperationOf<"once">,
    outgoing: Outgoing,
    identity: OnceIdentity
  ) => Effect.Effect<Relayed.Relayed, OnceFailure>
}>()("@trigate/upstream/Calls") {}

const retryAfterOf = (header: string | undefined): number | undefined =>
  header !== undefined && /^[0-9]{1,6}$/u.test(header) ? Number(header) : undefined

// a result is data and may hold what only looks like a part of an address; an error's words are not
const isRefusal = (answer: WireAnswer, text: string): boolean =>
  answer.status >= 300 || JsonText.members(text).has("error")

/**
 * The body without the endpoint key: a node that does not know a path likes to quote it, and the key is a part of it.
 *
 * Only refusals quote paths, with an HTTP status of their own or as a JSON-RPC error under 200.
 */
const withoutKey = (target: Target, answer: WireAnswer): Uint8Array => {
  const secrets = Redacted.value(target.secrets)
  if (secrets.length === 0) return answer.body
  const quoting = Option.filter(
    Relayed.utf8(answer.body),
    (text) => secrets.some((secret) => text.includes(secret)) && isRefusal(answer, text)
  )
  return Option.match(quoting, {
    onNone: () => answer.body,
    onSome: (text) => Relayed.bytes(secrets.reduce((left, secret) => left.replaceAll(secret, "…"), text))
  })
}

const relayed = (target: Target, answer: WireAnswer): Relayed.Relayed => {
  const retryAfter = retryAfterOf(answer.headers["retry-after"])
  return {
    upstream: target.label,
    status: answer.status,
    contentType: answer.headers["content-type"] ?? "application/octet-stream",
    body: withoutKey(target, answer),
    ...Relayed.signerIn(answer.headers),
    ...(retryAfter === undefined ? {} : { retryAfter })
  }
}

const startsHtml = /^\s*</u

/** Why an answer is not the upstream's own: HTML from something in between, nothing at all, a cut body, a redirect. */
const foreign = (answer: Relayed.Relayed): string | undefined => {
  if (answer.status >= 300 && answer.status < 400) return `a redirect (HTTP ${answer.status})`
  if (answer.body.length === 0 && answer.status !== 429) return `an empty body (HTTP ${answer.status})`
  const isHtml = answer.contentType.startsWith("text/html") || startsHtml.test(Relayed.excerpt(answer, 8))
  if (isHtml) return `HTML (HTTP ${answer.status})`
  return answer.status === 200 && Result.isFailure(JsonText.parse(Relayed.text(answer)))
    ? "what is not JSON (HTTP 200)"
    : undefined
}

// a server fault or a full budget at one address says nothing about the next one
const isFinal = (operation: OperationOf<"read">, answer: Relayed.Relayed): boolean =>
  operation.refusal?.matches(answer) === true || (answer.status < 500 && answer.status !== 429)

const headersOf = (body: Uint8Array | undefined): { readonly [name: string]: string } =>
  body === undefined
    ? { accept: "application/json" }
    : { accept: "application/json", "content-type": "application/json" }

const defaults = {
  readDeadline: "10 seconds",
  onceDeadline: "20 seconds",
  maxAnswerBytes: 16 * 1024 * 1024
} as const

const make = Effect.fnUntraced(function*(options: Options) {
  const wire = yield* Wire
  const readDeadline = Duration.fromInputUnsafe(options.readDeadline ?? defaults.readDeadline)
  const onceDeadline = Duration.fromInputUnsafe(options.onceDeadline ?? defaults.onceDeadline)
  const maxAnswerBytes = options.maxAnswerBytes ?? defaults.maxAnswerBytes

  const send = (target: Target, body: Uint8Array | undefined): Effect.Effect<Relayed.Relayed, WireError> =>
    Effect.map(
      wire.send({
        method: body === undefined ? "GET" : "POST",
        url: target.url,
        headers: headersOf(body),
        body,
        maxAnswerBytes
      }),
      (answer) => relayed(target, answer)
    )

  const readOne = (
    operation: OperationOf<"read">,
    target: Target,
    body: Uint8Array | undefined,
    attempts: number
  ): Effect.Effect<Relayed.Relayed, ReadFailure> =>
    Effect.matchEffect(CallMetrics.observe(operation, target.label, send(target, body)), {
      onFailure: (error) =>
        Effect.fail(
          error.sent === "maybe" && error.reason !== "Broken"
            ? malformed(target.label, error.detail)
            : new UpstreamUnavailable({
              upstream: target.label,
              attempts,
              detail: `${target.label} could not be reached (${error.detail})`
            })
        ),
      onSuccess: (answer) => {
        const issue = foreign(answer)
        if (issue === undefined) return Effect.succeed(answer)
        return Effect.fail(
          answer.status >= 400
            ? new UpstreamUnavailable({
              upstream: target.label,
              attempts,
              detail: `${target.label} answered with ${issue}`
            })
            : malformed(target.label, issue)
        )
      }
    })

  const read = (operation: OperationOf<"read">, outgoing: Outgoing) => {
    const [first, ...others] = outgoing.targets
    const from = (target: Target, attempts: number): Effect.Effect<Relayed.Relayed, ReadFailure> => {
      const next = others[attempts - 1]
      const attempt = readOne(operation, target, outgoing.body, attempts)
      return next === undefined ? attempt : Effect.matchEffect(attempt, {
        onFailure: () => from(next, attempts + 1),
        onSuccess: (answer) => isFinal(operation, answer) ? Effect.succeed(answer) : from(next, attempts + 1)
      })
    }
    return from(first, 1).pipe(
      Effect.timeoutOrElse({
        duration: readDeadline,
        orElse: () =>
          Effect.fail(
            new UpstreamTimeout({
              upstream: first.label,
              deadline: Duration.toMillis(readDeadline),
              detail: `${first.label} did not answer within ${Duration.format(readDeadline)}`
            })
          )
      })
    )
  }

  const once = (operation: OperationOf<"once">, outgoing: Outgoing, identity: OnceIdentity) => {
    const [first, ...others] = outgoing.targets
    const unknown = (upstream: string, what: string) =>
      new OutcomeUnknown({ upstream, ...identity, advice: resendAdvice, detail: `${upstream}: ${what}` })
    const from = (target: Target, attempts: number): Effect.Effect<Relayed.Relayed, OnceFailure> =>
      Effect.matchEffect(CallMetrics.observe(operation, target.label, send(target, outgoing.body)), {
        onFailure: (error) => {
          if (error.sent === "maybe") return Effect.fail(unknown(target.label, `the exchange broke (${error.detail})`))
          const next = others[attempts - 1]
          return next === undefined
            ? Effect.fail(
              new UpstreamUnavailable({
                upstream: target.label,
                attempts,
                detail: `${target.label} could not be reached (${error.detail}); nothing was sent`
              })
            )
            : from(next, attempts + 1)
        },
        onSuccess: (answer) => {
          const issue = foreign(answer)
          // a refusal is final even in HTML; anything else from in between leaves open whether the action got through
          return issue === undefined || (answer.status >= 400 && answer.status < 500)
            ? Effect.succeed(answer)
            : Effect.fail(unknown(target.label, `the answer was ${issue}`))
        }
      })
    const call = from(first, 1).pipe(
      Effect.timeoutOrElse({
        duration: onceDeadline,
        orElse: () => Effect.fail(unknown(first.label, `no answer within ${Duration.format(onceDeadline)}`))
      })
    )
    // a caller that leaves must not tear down an exchange whose bytes may be out
    return Effect.flatMap(Effect.forkDetach(call), Fiber.join)
  }

  return Calls.of({ read, once })
})

/** Calls over the `Wire` of the context. */
export const layer = (options: Options = {}): Layer.Layer<Calls, never, Wire> => Layer.effect(Calls, make(options))

/** Calls with the deadlines of `TRIGATE_READ_DEADLINE` and `TRIGATE_ONCE_DEADLINE`. */
export const layerConfig: Layer.Layer<Calls, Config.ConfigError, Wire> = Layer.effect(
  Calls,
  Effect.flatMap(
    Config.all({
      readDeadline: deadline("TRIGATE_READ_DEADLINE", defaults.readDeadline),
      onceDeadline: deadline("TRIGATE_ONCE_DEADLINE", defaults.onceDeadline)
    }),
    make
  )
)
