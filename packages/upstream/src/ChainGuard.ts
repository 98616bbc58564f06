/**
 * Keeps calls off the addresses of an EVM upstream that are on another chain than the rest.
 *
 * Each address is asked for its chain at the start and now and then, in the background. One that disagrees with the
 * majority is asked nothing until it agrees; where numbers are equal, the most preferred address is right. One that does
 * not answer keeps what was known of it: nothing is known at first, and then it is usable.
 */
import { Quantity } from "@trigate/domain/Hex"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { HttpTransport } from "./HttpTransport.ts"
import * as HealthMetrics from "./internal/HealthMetrics.ts"
import * as KnownAddresses from "./internal/KnownAddresses.ts"
import { OutlierDetection } from "./OutlierDetection.ts"
import type { Usable } from "./OutlierDetection.ts"
import { nameOf, targets } from "./Upstream.ts"
import type { Target, Upstream } from "./Upstream.ts"

/** An upstream whose addresses have to be on one chain. */
export interface Guarded {
  readonly upstream: Upstream
  /** Where its addresses speak JSON-RPC. */
  readonly path: string
  /** The chain that it has to be; without it the addresses are compared, and a single one is not asked. */
  readonly chainId?: bigint
}

/** What to guard, and how often to look again. */
export interface Options {
  readonly guarded: ReadonlyArray<Guarded>
  /** Time between two rounds, give or take a fifth; 1 minute when not given. */
  readonly every?: Duration.Input
}

interface Watched {
  readonly target: Target
  /** Done when its upstream's first round is over. */
  readonly asked: Deferred.Deferred<void>
  readonly metrics: HealthMetrics.HealthMetrics
  chainId: bigint | undefined
  isWrong: boolean
}

const question = {
  method: "POST",
  headers: { accept: "application/json", "content-type": "application/json" },
  body: Utf8.encode(JsonRpc.requestText(1, "eth_chainId", "[]")),
  maxAnswerBytes: 64 * 1024,
  timeout: 5000
} as const

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Struct({ result: Quantity })))

const ask = (wire: HttpTransport["Service"], { url }: Target) =>
  wire.send({ ...question, url }).pipe(
    Effect.flatMap(({ body }) => decode(Option.getOrElse(Utf8.decode(body), () => ""))),
    Effect.map(({ result }) => result),
    Effect.option
  )

/** The id that most have; the first of them where numbers are equal. */
const majority = (ids: ReadonlyArray<bigint>): bigint | undefined => {
  const votes = new Map<bigint, number>()
  for (const id of ids) votes.set(id, (votes.get(id) ?? 0) + 1)
  const most = Math.max(...votes.values())
  return [...votes].find(([, count]) => count === most)?.[0]
}

const judge = Effect.fnUntraced(function*(watched: Watched, right: bigint) {
  if (watched.chainId === undefined) return
  const isWrong = watched.chainId !== right
  if (isWrong === watched.isWrong) return
  watched.isWrong = isWrong
  const name = nameOf(watched.target)
  if (!isWrong) return yield* Effect.logInfo(`${name} is on chain ${right} again`)
  watched.metrics.benched("wrong_chain")
  yield* Effect.logWarning(
    `${name} is on chain ${watched.chainId}, not on ${right}: nothing is asked of it until it is`
  )
})

const round = Effect.fnUntraced(
  function*(wire: HttpTransport["Service"], group: ReadonlyArray<Watched>, chainId?: bigint) {
    yield* Effect.forEach(group, (watched) =>
      Effect.map(ask(wire, watched.target), (answer) => {
        if (Option.isSome(answer)) watched.chainId = answer.value
      }), { concurrency: "unbounded", discard: true })
    const right = chainId ?? majority(group.flatMap((watched) => watched.chainId ?? []))
    if (right !== undefined) yield* Effect.forEach(group, (watched) => judge(watched, right), { discard: true })
  }
)

const make = Effect.fnUntraced(function*({ every = "1 minute", guarded }: Options) {
  const health = yield* OutlierDetection
  const wire = yield* HttpTransport
  const context = yield* Effect.context()
  const byAddress = new Map<string, Watched>()
  const known = KnownAddresses.make((target) => ({ watched: byAddress.get(KnownAddresses.identityOf(target)) }))
  let isQuiet = true
  const takeStock = () => {
    isQuiet = byAddress.values().every((watched) => !watched.isWrong && Deferred.isDoneUnsafe(watched.asked))
  }

  for (const { chainId, path, upstream } of guarded) {
    const addresses = targets(upstream, path)
    if (addresses.length < 2 && chainId === undefined) continue
    const asked = yield* Deferred.make<void>()
    // nobody else could be asked instead: no call waits for what a single address says of itself
    if (addresses.length < 2) yield* Deferred.succeed(asked, undefined)
    const group = addresses.map((target): Watched => ({
      target,
      asked,
      metrics: HealthMetrics.make(target, context),
      chainId: undefined,
      isWrong: false
    }))
    for (const watched of group) byAddress.set(KnownAddresses.identityOf(watched.target), watched)
    yield* round(wire, group, chainId).pipe(
      Effect.ensuring(Deferred.succeed(asked, undefined)),
      Effect.andThen(Effect.sync(takeStock)),
      Effect.repeat(Schedule.jittered(Schedule.spaced(every))),
      Effect.forkScoped
    )
  }
  takeStock()

  const isUnasked = (target: Target): boolean => {
    const { watched } = known.of(target)
    return watched !== undefined && !Deferred.isDoneUnsafe(watched.asked)
  }

  const firstRounds = (asked: ReadonlyArray<Target>) =>
    Effect.forEach(asked, (target) => {
      const { watched } = known.of(target)
      return watched === undefined ? Effect.void : Deferred.await(watched.asked)
    }, { discard: true })

  const rightOf = <T extends Target>(asked: Arr.NonEmptyReadonlyArray<T>): Effect.Effect<Usable<T>> =>
    Effect.suspend(() => {
      const right = asked.filter((target) => known.of(target).watched?.isWrong !== true)
      return Arr.isReadonlyArrayNonEmpty(right)
        ? health.usable(right)
        : Effect.succeed({ targets: [], retryAfter: undefined })
    })

  return OutlierDetection.of({
    ...health,
    usable: (asked) =>
      Effect.suspend(() => {
        if (isQuiet) return health.usable(asked)
        return asked.some(isUnasked)
          ? Effect.andThen(Effect.timeoutOption(firstRounds(asked), "200 millis"), rightOf(asked))
          : rightOf(asked)
      })
  })
})

/** The `OutlierDetection` of the context, without addresses on a wrong chain. */
export const layer = (options: Options): Layer.Layer<OutlierDetection, never, OutlierDetection | HttpTransport> =>
  Layer.effect(OutlierDetection, make(options))
