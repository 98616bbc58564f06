/**
 * Scenarios under plans of faults: runs a scenario for many seeds, and reduces the plan of a run that failed to the
 * faults that make it fail.
 */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Simulation from "./Simulation.ts"

/** The result of a scenario: the violated properties, and the branches that it reached. */
export interface Findings {
  /** The violated properties, each as a sentence. */
  readonly violations: ReadonlyArray<string>
  /** Names of faults and of branches that the run reached. */
  readonly reached: ReadonlySet<string>
}

/** A scenario: its plans of faults, and the program that a plan disturbs. */
export interface Scenario<Fault> {
  /** Draws a plan. */
  readonly plan: (random: Simulation.NextRandom) => ReadonlyArray<Fault>
  /** Runs the scenario under a plan. A failure counts as a violation. */
  readonly run: (plan: ReadonlyArray<Fault>) => Effect.Effect<Findings, unknown, Simulation.Simulation>
  /** Describes a fault in one line. */
  readonly describe: (fault: Fault) => string
  /** Names that some run must reach. A campaign that does not reach one of them fails. */
  readonly mustReach: ReadonlyArray<string>
  /** The options of a seed's simulation. Default: a fiber yields after one of fifty steps in every second seed. */
  readonly options?: (seed: number) => Simulation.Options
}

/** One run of a scenario. */
export interface Run<Fault>
  extends Findings, Pick<Simulation.Report<unknown, unknown>, "digest" | "elapsed" | "steps">
{
  readonly seed: number
  readonly plan: ReadonlyArray<Fault>
  readonly timeline: ReadonlyArray<string>
}

/** Draws the plan of a seed. Equal seeds have equal plans. */
export const drawPlan = <Fault>(scenario: Scenario<Fault>, seed: number): ReadonlyArray<Fault> =>
  // another generator than the simulation's, so that a reduced plan does not change the other choices
  scenario.plan(Simulation.makeRandom(seed ^ 0x5bd1e995))

const defaultOptions = (seed: number): Simulation.Options => ({ yields: seed % 2 === 0 ? 0 : 0.02 })

/**
 * Runs a scenario for a seed, under the plan of the seed by default.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <Fault>(
  scenario: Scenario<Fault>,
  seed: number,
  plan: ReadonlyArray<Fault> = drawPlan(scenario, seed)
): Run<Fault> => {
  const { options = defaultOptions } = scenario
  // @effect-diagnostics-next-line anyUnknownInErrorContext:off -- the error only becomes the text of a violation
  const { exit, ...report } = Simulation.run(scenario.run(plan), { ...options(seed), seed })
  return {
    ...report,
    seed,
    plan,
    ...(Exit.isSuccess(exit)
      ? exit.value
      : { violations: [`the scenario failed: ${Cause.pretty(exit.cause)}`], reached: new Set<string>() })
  }
}

/**
 * Reduces the plan of a failed run: removes as many faults as possible, such that the run still fails. Returns the run
 * with the reduced plan. Makes at most `most` further runs.
 *
 * @since 0.1.0
 * @category running
 */
export const shrink = <Fault>(scenario: Scenario<Fault>, failed: Run<Fault>, most = 200): Run<Fault> => {
  let best = failed
  let runs = 0
  for (let size = Math.ceil(best.plan.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.plan.length && runs < most;) {
      runs++
      const tried = run(scenario, best.seed, [...best.plan.slice(0, from), ...best.plan.slice(from + size)])
      if (tried.violations.length > 0) best = tried
      else from += size
    }
  }
  return best
}

/** The result of runs for many seeds. */
export interface Campaign<Fault> {
  readonly failures: ReadonlyArray<Run<Fault>>
  /** The number of runs that reached a name. */
  readonly reached: ReadonlyMap<string, number>
  /** Names that some run must reach, and none did. */
  readonly missed: ReadonlyArray<string>
  readonly runs: number
  readonly steps: number
  /** Simulated milliseconds. */
  readonly elapsed: number
}

/**
 * Runs a scenario for the given seeds. Calls `progress` after each run, and stops when it returns `false`.
 *
 * @since 0.1.0
 * @category running
 * @example
 * ```ts
 * import * as Plan from "@trigate/simulation/Plan"
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import { Effect } from "effect"
 *
 * const kinds = ["clockShifted", "diskSlow", "killed"] as const
 *
 * // a writer must not leave half a file
 * const scenario: Plan.Scenario<typeof kinds[number]> = {
 *   plan: (random) => kinds.filter(() => random() < 0.5),
 *   describe: (fault) => fault,
 *   mustReach: kinds,
 *   run: Effect.fnUntraced(function*(plan) {
 *     const { after, log, node } = yield* Simulation.Simulation
 *     const writer = node("writer")
 *     let parts = 0
 *     writer.start(Effect.gen(function*() {
 *       while (parts < 2) {
 *         log("writer", `writes part ${++parts}`)
 *         yield* Effect.sleep(plan.includes("diskSlow") ? 200 : 20)
 *       }
 *     }))
 *     if (plan.includes("clockShifted")) writer.shiftClock(1000)
 *     if (plan.includes("killed")) after(100, writer.kill)
 *     yield* Effect.sleep("1 second")
 *     return { violations: parts === 1 ? ["half a file"] : [], reached: new Set(plan) }
 *   })
 * }
 *
 * const { failures: [first], missed, runs } = Plan.campaign(scenario, Array.from({ length: 20 }, (_, seed) => seed))
 * console.log(`${runs} runs, missed: ${missed.length}`)
 * if (first !== undefined) console.log(Plan.format(scenario, Plan.shrink(scenario, first)))
 * ```
 * ```text
 * 20 runs, missed: 0
 * seed 2, digest c116ecdd, 2 steps, 1.0 s simulated
 * faults:
 *   diskSlow
 *   killed
 * violations:
 *   half a file
 * timeline:
 *        0.000 writer     writes part 1
 * ```
 */
export const campaign = <Fault>(
  scenario: Scenario<Fault>,
  seeds: Iterable<number>,
  progress: (run: Run<Fault>) => boolean = () => true
): Campaign<Fault> => {
  const failures: Array<Run<Fault>> = []
  const reached = new Map<string, number>()
  let runs = 0
  let steps = 0
  let elapsed = 0
  for (const seed of seeds) {
    const done = run(scenario, seed)
    runs++
    steps += done.steps
    elapsed += done.elapsed
    for (const name of done.reached) reached.set(name, (reached.get(name) ?? 0) + 1)
    if (done.violations.length > 0) failures.push(done)
    if (!progress(done)) break
  }
  return { failures, reached, missed: scenario.mustReach.filter((name) => !reached.has(name)), runs, steps, elapsed }
}

/**
 * Formats a failed run: its seed, its faults, the violations, and the end of its timeline, of at most `lines` lines.
 *
 * @since 0.1.0
 * @category formatting
 */
export const format = <Fault>(scenario: Scenario<Fault>, failed: Run<Fault>, lines = 60): string =>
  [
    `seed ${failed.seed}, digest ${failed.digest}, ${failed.steps} steps, ${
      (failed.elapsed / 1000).toFixed(1)
    } s simulated`,
    failed.plan.length === 0 ? "without faults" : "faults:",
    ...failed.plan.map((fault) => `  ${scenario.describe(fault)}`),
    "violations:",
    ...failed.violations.map((text) => `  ${text}`),
    "timeline:",
    ...failed.timeline.slice(failed.timeline.length - lines)
  ].join("\n")
