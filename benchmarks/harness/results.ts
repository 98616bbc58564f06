/** What a run leaves behind: everything it measured, not only what it printed. */
import * as Schema from "effect/Schema"

/** One peer under load in one round. */
export const Round = Schema.Struct({
  requests: Schema.Number,
  seconds: Schema.Number,
  /** User and system time of the peer and its children. */
  cpuSeconds: Schema.Number,
  perSecond: Schema.Number,
  /** Requests for each second of processor time of the peer: what one core of it serves. */
  perCore: Schema.Number,
  /** Share of its core that the peer used; well below 1 the load generator was the limit. */
  busy: Schema.Number,
  p50Millis: Schema.Number,
  p99Millis: Schema.Number,
  /** Requests that reached the upstream. */
  upstream: Schema.Number
})
export type Round = typeof Round.Type

/** What was measured of one peer, or one series of samples. */
export const Series = Schema.Struct({
  name: Schema.String,
  rounds: Schema.Array(Round)
})
export type Series = typeof Series.Type

/** One figure beside its aim; `met` is absent where there is no aim or no peer to compare with. */
export const Row = Schema.Struct({
  title: Schema.String,
  beside: Schema.String,
  unit: Schema.String,
  value: Schema.Number,
  /** What the value is the median of, in the order of the rounds. */
  values: Schema.Array(Schema.Number),
  /** Between which the value lies with 95 % certainty. */
  interval: Schema.optionalKey(Schema.Tuple([Schema.Number, Schema.Number])),
  aim: Schema.optionalKey(Schema.String),
  met: Schema.optionalKey(Schema.Boolean)
})
export type Row = typeof Row.Type

/** One table of raw figures: a line for each peer. */
export const Table = Schema.Struct({
  title: Schema.String,
  series: Schema.Array(Series)
})
export type Table = typeof Table.Type

/** What one suite measured. */
export const SuiteResult = Schema.Struct({
  suite: Schema.String,
  seconds: Schema.Number,
  /** Load average of the machine before the suite began: other work on it blurs what is measured. */
  loadBefore: Schema.Number,
  rows: Schema.Array(Row),
  tables: Schema.Array(Table),
  samples: Schema.Record(Schema.String, Schema.Array(Schema.Number)),
  notes: Schema.Array(Schema.String)
})
export type SuiteResult = typeof SuiteResult.Type

/** A run. */
export const Run = Schema.Struct({
  plan: Schema.String,
  at: Schema.String,
  commit: Schema.String,
  commitDate: Schema.String,
  /** Whether files differed from the commit. */
  modified: Schema.Boolean,
  machine: Schema.Record(Schema.String, Schema.String),
  versions: Schema.Record(Schema.String, Schema.String),
  suites: Schema.Array(SuiteResult)
})
export type Run = typeof Run.Type
