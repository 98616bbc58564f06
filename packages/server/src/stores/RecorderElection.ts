/**
 * Elects the candle recorder among the replicas that share a Postgres database, with Effect's cluster.
 *
 * The recorder is a singleton of a cluster with one shard. The cluster's runners never call each other. Each runner
 * sends heartbeats to the database, and one runner owns the shard through an advisory lock. If the owner is killed, its
 * heartbeats stop, and another runner acquires the shard.
 */
import * as CandleRecording from "@trigate/trading/candles/CandleRecording"
import * as MessageStorage from "effect/cluster/MessageStorage"
import { RunnerAddress } from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Singleton from "effect/cluster/Singleton"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { SqlClient } from "effect/sql/SqlClient"

/** The scope of the election, and the time until a failover. */
export interface Options {
  /** The network of the recorder. In a shared database, each network has its own recorder. */
  readonly network: string
  /** How long a replica remains the recorder after its last heartbeat. Default: 8 seconds. */
  readonly silence?: Duration.Input
}

/** The pause after a failed attempt to join the election. */
const PAUSE = "5 seconds"

const sharding = ({ network, silence = "8 seconds" }: Options, name: string) =>
  Sharding.layer.pipe(
    Layer.provide(Runners.layerNoop),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(SqlRunnerStorage.layerWith({ prefix: `trigate_recorder_${network}` })),
    // no health checks: a runner is alive while the database receives its heartbeats
    Layer.provide(RunnerHealth.layerNoop),
    Layer.provide(ShardingConfig.layer({
      // Effect requires an address, but nothing connects to it
      runnerAddress: Option.some(RunnerAddress.make({ host: name, port: 0 })),
      shardsPerGroup: 1,
      shardLockExpiration: silence,
      shardLockRefreshInterval: Duration.divideUnsafe(Duration.fromInputUnsafe(silence), 4),
      refreshAssignmentsInterval: "1 second",
      entityMessagePollInterval: "1 second",
      entityTerminationTimeout: "2 seconds"
    }))
  )

/**
 * Elects one recorder at a time among the replicas with the same network and database.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<CandleRecording.Election, never, SqlClient> =>
  Layer.effect(
    CandleRecording.Election,
    Effect.gen(function*() {
      const database = Layer.succeedContext(yield* Effect.context<SqlClient>())
      const name = `replica-${yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)}`
      const whileElected = (recording: Effect.Effect<void>) => {
        const elected = Effect.onInterrupt(
          Effect.andThen(Effect.logInfo("This replica records candles from now on"), recording),
          () => Effect.logInfo("This replica no longer records candles")
        )
        return Layer.launch(
          Singleton.make("candle-recorder", elected).pipe(
            Layer.provide(sharding(options, name)),
            Layer.provide(database)
          )
        ).pipe(
          // logs no cause, because a database error may contain the host name of the database
          Effect.tapCause(() => Effect.logWarning("The election of a recorder failed; it is retried in 5 seconds")),
          Effect.sandbox,
          Effect.retry(Schedule.spaced(PAUSE)),
          Effect.orDie
        )
      }
      return { whileElected }
    })
  )
