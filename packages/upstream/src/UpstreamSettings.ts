/** The settings of calls to upstreams: addresses, rate limits and deadlines. */
import {
  BaseUrls,
  baseUrls,
  Count,
  count,
  Deadline,
  duration,
  list,
  OnOff,
  onOff,
  optional,
  Positive,
  positive,
  SocketUrls,
  socketUrls,
  withDefault
} from "@trigate/domain/Setting"
import type { Values } from "@trigate/domain/Setting"

const noLimit = "unset: no limit"

const removedBatches = "has no effect: reads of different callers are no longer sent in one batch, which saved nothing"

/** The settings, by member name in a configuration file. */
export const settings = {
  tradingApiUrl: list("TRIGATE_TRADING_API_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the trading chain's official API, in order of preference",
    takes: baseUrls
  }),
  tradingNodeUrl: list("TRIGATE_TRADING_NODE_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the trading-chain node, with the endpoint key in the path",
    takes: baseUrls
  }),
  tradingNodeWsUrl: list("TRIGATE_TRADING_NODE_WS_URL", SocketUrls, {
    group: "Upstreams",
    needsRestart: true,
    meaning: "WebSocket URLs of the trading-chain node, for a subscription to new blocks",
    takes: socketUrls
  }, "unset: new blocks are polled"),
  layer2WsUrl: list("TRIGATE_LAYER2_WS_URL", SocketUrls, {
    group: "Upstreams",
    needsRestart: true,
    meaning: "WebSocket URLs of the layer-2 node, for a subscription to new blocks",
    takes: socketUrls
  }, "unset: new blocks are polled"),
  tokenChainUrl: list("TRIGATE_TOKEN_CHAIN_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the token-chain node, with the endpoint key in the path",
    takes: baseUrls
  }),
  layer2Url: list("TRIGATE_LAYER2_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the layer-2 node, with the endpoint key in the path",
    takes: baseUrls
  }),
  tradingApiWeight: withDefault("TRIGATE_TRADING_API_WEIGHT", Positive, "1200", {
    group: "Limits",
    meaning: "weight per minute that the official API grants this IP address",
    takes: positive
  }),
  tradingNodeRps: optional("TRIGATE_TRADING_NODE_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the trading-chain node's plan",
    takes: positive
  }, noLimit),
  tokenChainRps: optional("TRIGATE_TOKEN_CHAIN_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the token-chain node's plan",
    takes: positive
  }, noLimit),
  tokenChainStreamRps: withDefault("TRIGATE_TOKEN_CHAIN_STREAM_RPS", Positive, "1", {
    group: "Limits",
    meaning: "maximum requests per second to the token-chain node, for all transaction streams of a process together",
    takes: positive
  }),
  layer2Rps: optional("TRIGATE_LAYER2_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the layer-2 node's plan",
    takes: positive
  }, noLimit),
  tradingNodeLogBlocks: optional("TRIGATE_TRADING_NODE_LOG_BLOCKS", Count, {
    group: "Limits",
    meaning: "maximum blocks in one `eth_getLogs` at the trading-chain nodes; 50 for the public node",
    takes: count
  }, "unset: learned from the nodes' errors"),
  layer2LogBlocks: optional("TRIGATE_LAYER2_LOG_BLOCKS", Count, {
    group: "Limits",
    meaning: "maximum blocks in one `eth_getLogs` at the layer-2 nodes",
    takes: count
  }, "unset: learned from the nodes' errors"),
  tradingNodeBatch: withDefault("TRIGATE_TRADING_NODE_BATCH", Count, "1", {
    group: "Limits",
    meaning: removedBatches,
    takes: count
  }),
  layer2Batch: withDefault("TRIGATE_LAYER2_BATCH", Count, "1", {
    group: "Limits",
    meaning: removedBatches,
    takes: count
  }),
  logsMaxRequests: withDefault("TRIGATE_LOGS_MAX_REQUESTS", Count, "40", {
    group: "Limits",
    meaning: "maximum upstream requests for one `eth_getLogs`",
    takes: count
  }),
  callerFilters: withDefault("TRIGATE_CALLER_FILTERS", Count, "100", {
    group: "Limits",
    meaning:
      "maximum number of filters (`eth_newFilter` and similar methods) of one caller; a filter is removed after 5 minutes without a poll",
    takes: count
  }),
  readDeadline: withDefault("TRIGATE_READ_DEADLINE", Deadline, "10 seconds", {
    group: "Limits",
    meaning: "deadline of a read, including all attempts",
    takes: duration
  }),
  onceDeadline: withDefault("TRIGATE_ONCE_DEADLINE", Deadline, "20 seconds", {
    group: "Limits",
    meaning: "deadline of a signed action, including all attempts",
    takes: duration
  }),
  traceUpstream: withDefault("TRIGATE_TRACE_UPSTREAM", OnOff, "off", {
    group: "Telemetry",
    meaning: "whether requests to upstreams contain the `traceparent` of their span; requires an OTLP endpoint",
    takes: onOff
  })
}

/** The decoded settings. */
export type Settings = Values<typeof settings>
