/** The blocks that no test runs as they stand: `path: first line (reason)`, as the documents excuse them. */
export const notRun: ReadonlyArray<string> = [
  "README.md: -const exchange = new hyperliquid({ walletAddress, privateKey }) (only read)",
  "README.md: git clone https://github.com/trigate/trigate.git && cd trigate (every test starts a gateway)",
  "README.md: npm ci && npm test (it would run itself)",
  "README.md: TRIGATE_TRADING_API_URL=https://api.hyperliquid.xyz \\ (real upstreams)",
  "examples/bot-test/README.md: npx vitest run examples/bot-test (npm test runs these tests)",
  "docs/tutorial.md: git clone https://github.com/trigate/trigate.git && cd trigate && npm ci && npx trigate sandbox (it serves until it is " +
  "stopped)",
  "docs/cli.md: trigate serve --port 9000 --read-deadline 5s (it serves until it is stopped)",
  "docs/guides/candle-history.md: TRIGATE_TRADING_API_URL=https://api.hyperliquid.xyz \\ (it serves until it is stopped)",
  "docs/guides/candle-export.md: import duckdb (the package may be missing; test/compat/candleTools.test.ts runs it where it is " +
  "installed)",
  "docs/guides/candle-export.md: import pandas (the package may be missing; test/compat/candleTools.test.ts runs it where it is " +
  "installed)",
  "docs/guides/candle-export.md: import pandas (the package may be missing; test/compat/candleTools.test.ts runs it where it is " +
  "installed)",
  "docs/guides/mcp.md: TRIGATE_GUARD=policies.yaml trigate sandbox (it serves until it is stopped)",
  "docs/guides/callers.md: TRIGATE_CALLERS=keys.json trigate serve --host 0.0.0.0 (it serves until it is stopped)",
  "docs/guides/callers.md: curl -s localhost:9090/admin/keys -H \"authorization: Bearer $(cat admin.key)\" (it needs a gateway with keys and an admin listener)",
  "docs/guides/operating.md: npx trigate serve --port 8081 --trading-api-url http://localhost:8080 (every test of this page starts " +
  "the two gateways)",
  "docs/guides/deploy.md: npx trigate serve --env-file trigate.env (it serves until it is stopped)",
  "docs/guides/deploy.md: npm run build && npm pack --ignore-scripts --pack-destination /tmp ./packages/trigate/build (it takes " +
  "root, systemd and the registry)",
  "docs/guides/deploy.md: docker build --tag trigate:0.1.0 . (it takes Docker)",
  "docs/guides/deploy.md: cd deploy/compose && mkdir --mode 700 secrets (it takes Docker)",
  "docs/guides/deploy.md: cp deploy/trigate.env.example deploy/kubernetes/trigate.env (it takes a cluster)",
  "docs/guides/observability.md: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 OTEL_SERVICE_NAME=trigate-eu npx trigate " +
  "serve (it serves until it is stopped; the tests of the server run it against a collector of their own)",
  "docs/guides/embed.md: npm install @trigate/chains @trigate/trading @trigate/tokens @trigate/evm @trigate/signing effect (the packages are " +
  "installed from their tarballs, and this guide is run there, by npm run packages)",
  "docs/guides/simulate.md: npm run simulate -- --seeds 20 (the tests of test/simulation run the same scenario)",
  "docs/guides/simulate.md: seed 4, digest 0929ddad, 26013 steps, 134.5 s simulated (the output of a mutant)",
  "docs/guides/from-freqtrade.md: freqtrade list-pairs --config config.json (freqtrade is not installed)",
  "docs/guides/from-freqtrade.md: PERPETUAL_BASE_URL = \"http://localhost:8080\" (only read)",
  "docs/guides/layer2.md: npx anvil (it serves until it is stopped; the tests of test/node run it)",
  "docs/guides/layer2.md: npx trigate serve --layer2-url http://127.0.0.1:8545 (it serves until it is stopped; the tests of " +
  "test/node run it)",
  "docs/guides/from-python-go-rust.md: import hyperliquid.exchange (the package may be missing)",
  "docs/guides/from-python-go-rust.md: def watch(url, subscriptions, callback): (only read)",
  "docs/guides/from-python-go-rust.md: import json (test/compat/pythonSdk.test.ts runs it, if Python is installed)",
  "docs/guides/from-python-go-rust.md: cloid = Cloid.from_str(\"0x\" + secrets.token_hex(16)) (the package may be missing)",
  "docs/guides/from-python-go-rust.md: type toGateway struct{ next http.RoundTripper } (only read)",
  "docs/guides/from-python-go-rust.md: pub(crate) static MAINNET_API_URL: &str = \"http://localhost:8080\"; (only read)",
  "docs/guides/from-python-go-rust.md: OkHttpClient http = new OkHttpClient.Builder().addInterceptor(chain -> { (only read)",
  "docs/guides/unknown-outcomes.md: npx trigate actions (it takes a database in which a crash left something)",
  "examples/backend/README.md: npm run build (npm run packages installs, tests and starts the example in an empty folder)",
  "examples/backend/README.md: post() { curl -s \"localhost:3000$1\" -H 'content-type: application/json' -d \"$2\"; echo; } (npm run " +
  "packages asks the same)",
  "examples/client/README.md: npm start (two terminals; the tests of the example run it)",
  "examples/multisig/README.md: npx -- node src/propose.ts > proposal.json (it leaves the keys open; the tests of the example run " +
  "the three programs)",
  "examples/multisig/README.md: npm start (two terminals; the tests of the example run it)",
  "examples/nonces/README.md: redis-server --save \"\" (two terminals; the tests of the example run it)",
  "examples/own-server/README.md: npm start (it serves until it is stopped; the tests of the example run it)",
  "examples/test-with-mocks/README.md: npm test (it is what the tests of the example do)"
]
