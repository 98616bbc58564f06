/** How long a run takes: `full` for figures to keep, `quick` for a look, `smoke` to see that everything still runs. */

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

/** The plan that the command line asks for. */
export const plan: Plan = process.argv.includes("--smoke")
  ? plans.smoke
  : process.argv.includes("--quick")
  ? plans.quick
  : plans.full
