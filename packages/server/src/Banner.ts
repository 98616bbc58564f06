/** The first lines that the gateway prints: where it listens, what is behind, how long the start took. */
import type { Backing } from "@trigate/trading/ActionLog"
import type { GatewayStatus } from "./GatewayStatus.ts"

/** Facts of a finished start; times are of the process, in milliseconds. */
export interface Start {
  readonly url: string
  readonly elapsed: number
  readonly cpu: number
  readonly actionLog: Backing
}

const actionLogs: { readonly [B in Backing]: string } = {
  memory: "in memory, lost with this process (TRIGATE_DATABASE_URL keeps it)",
  SQLite: "in a SQLite file, for this gateway alone",
  Postgres: "in Postgres",
  Redis: "claims in Redis, bytes in memory and lost with this process (TRIGATE_DATABASE_URL keeps them)"
}

const behind = (status: GatewayStatus["Service"]): string =>
  status.sandbox
    ? "  behind it: the sandbox, since no TRIGATE_*_URL is set; nothing here is real"
    : Object.entries(status.chains).map(([name, chain]) =>
      chain.mode === "live"
        ? `  ${name}: ${Object.entries(chain.upstreams).map(([label, count]) => `${label} x${count}`).join(", ")}`
        : `  ${name}: not configured`
    ).join("\n")

/** The lines. */
export const text = (status: GatewayStatus["Service"], start: Start): string =>
  `Trigate listens on ${start.url} (${status.network}), ready after ${Math.round(start.elapsed)} ms ` +
  `(${Math.round(start.cpu)} ms of processor time)
${behind(status)}${status.sandbox ? "" : `\n  action log: ${actionLogs[start.actionLog]}`}
  reference: ${start.url}/docs  contract: ${start.url}/openapi.json  state: ${start.url}/health/ready`
