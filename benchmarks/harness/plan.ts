/** What a run measures, and how long that takes: `full` for figures to keep, `quick` for a look, `smoke` to see that everything still runs. */

import { parseArgs } from "node:util"

export interface Plan {
  readonly name: "full" | "quick" | "smoke"
  /** Rounds that count; one more before them warms up. */
  readonly rounds: number
  /** Seconds of load on one peer in one round. */
  readonly seconds: number
  /** Requests through the gateway before the memory series begins, between two of its samples, and its samples. */
  readonly memory: { readonly warmup: number; readonly step: number; readonly samples: number }
  /** Milliseconds of one in-process turn. */
  readonly turnMillis: number
}

const plans: { readonly [Name in Plan["name"]]: Plan } = {
  full: {
    name: "full",
    rounds: 7,
    seconds: 3,
    memory: { warmup: 50_000, step: 50_000, samples: 10 },
    turnMillis: 300
  },
  quick: {
    name: "quick",
    rounds: 3,
    seconds: 1,
    memory: { warmup: 10_000, step: 10_000, samples: 3 },
    turnMillis: 100
  },
  smoke: { name: "smoke", rounds: 1, seconds: 0.2, memory: { warmup: 100, step: 100, samples: 2 }, turnMillis: 5 }
}

const { values } = parseArgs({
  strict: false,
  options: {
    quick: { type: "boolean" },
    smoke: { type: "boolean" },
    rounds: { type: "string" },
    against: { type: "string" },
    bundles: { type: "string" }
  }
})

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** The plan that the command line asks for. */
export const plan: Plan = values["smoke"] === true ? plans.smoke : values["quick"] === true ? plans.quick : plans.full

/** The number of rounds in which peers take turns, where the command line says one. */
export const pairedRounds: number | undefined = text(values["rounds"]) === undefined
  ? undefined
  : Number(values["rounds"])

/** The other checkout that this one is compared with, and the folder that has the bundles of both, `ours` and `theirs`. */
export const against = text(values["against"])
export const bundles = text(values["bundles"])

/** The name of the gateway of the other checkout, from that of the same one of this checkout. */
export const nameOfOther = (name: string): string => `${name} of ${against}`
