/** The text of `--help`. */
import { settings } from "@trigate/domain/Settings"

const line = ({ env, meaning, takes, unset }: (typeof settings)[keyof typeof settings]): string =>
  `  ${env.padEnd(28)} ${meaning}\n${" ".repeat(31)}${takes} (default: ${unset})`

/** What the gateway is, how it is started, and every setting. */
export const text = `Trigate: one typed gateway for a trading chain, a token chain and an EVM layer 2.

Usage
  npm start                serve; without any upstream address the built-in sandbox chains answer
  npm start -- --help      this text

Settings (environment variables)
${Object.values(settings).map(line).join("\n")}

Examples
  TRIGATE_PORT=9000 npm start
  TRIGATE_TRADING_API_URL=https://api.hyperliquid.xyz TRIGATE_LAYER2_URL=https://node.example/KEY npm start

Once it runs: GET /docs is the reference, /openapi.json the contract, /health/ready says what is behind.
`
