/** One error of every class, with every field that it can have. */
import * as ActionError from "@trigate/domain/errors/GatewayError"
import type { GatewayError } from "@trigate/domain/errors/GatewayError"

const detail = "what happened, with \"quotes\" and \u20ac"
const signer = "0x17281460228691b044e080a5f5257dce8e47f79c"
const other = "0xF44938b0125a6662f9536281aD2cd6c499f22004"
const nonce = 1_700_000_000_000

export const samples: { readonly [Tag in GatewayError["_tag"]]: Extract<GatewayError, { readonly _tag: Tag }> } = {
  InvalidRequest: new ActionError.InvalidRequest({
    detail,
    errors: [{ path: ["action", "signatures", 0, "r"], message: "Expected 0x hex" }]
  }),
  UnsupportedAction: new ActionError.UnsupportedAction({ detail, actionType: "order", supported: ["multiSig"] }),
  UnsupportedMethod: new ActionError.UnsupportedMethod({ detail, method: "eth_call" }),
  UnsupportedBlock: new ActionError.UnsupportedBlock({
    detail,
    method: "eth_getStorageAt",
    block: "0x1",
    supported: ["latest"]
  }),
  LogRangeTooWide: new ActionError.LogRangeTooWide({ detail, requested: 100_000, served: 2000 }),
  UnavailableOnNode: new ActionError.UnavailableOnNode({
    detail,
    operation: "candleSnapshot",
    availableOn: ["official-api"]
  }),
  ChainNotConfigured: new ActionError.ChainNotConfigured({ detail, chain: "tokens" }),
  NonceOutOfWindow: new ActionError.NonceOutOfWindow({
    detail,
    nonce,
    now: nonce + 1,
    earliest: nonce + 2,
    latest: nonce + 3
  }),
  NonceMismatch: new ActionError.NonceMismatch({ detail, nonce, actionNonce: nonce + 1 }),
  NonceAlreadyUsed: new ActionError.NonceAlreadyUsed({ detail, signer, nonce, settled: "rejected" }),
  InvalidSignature: new ActionError.InvalidSignature({
    detail,
    reason: "wrong signer",
    recovered: other,
    expected: signer
  }),
  SignerNotAllowed: new ActionError.SignerNotAllowed({ detail, signer }),
  PolicyViolation: new ActionError.PolicyViolation({
    detail,
    rule: "orderNotional",
    policy: "desk",
    account: signer,
    measured: 6000,
    limit: 5000,
    unit: "USDC",
    leg: 1,
    retryAfter: 3
  }),
  ActionNotFound: new ActionError.ActionNotFound({ detail }),
  Unauthorized: new ActionError.Unauthorized({ detail }),
  NotPermitted: new ActionError.NotPermitted({ detail, missing: "classes", needed: "sign" }),
  QuotaExceeded: new ActionError.QuotaExceeded({ detail, retryAfter: 7 }),
  Overloaded: new ActionError.Overloaded({ detail, retryAfter: 1 }),
  InvalidAddress: new ActionError.InvalidAddress({ detail, address: "EQ…", reason: "checksum" }),
  TokenNotFound: new ActionError.TokenNotFound({ detail, address: "0:ab", contractType: "nft_item" }),
  UnknownAsset: new ActionError.UnknownAsset({ detail, coin: "NOPE" }),
  HistoryUnavailable: new ActionError.HistoryUnavailable({
    detail,
    address: `0:${"11".repeat(32)}`,
    after: `48756545000001:${"22".repeat(32)}`
  }),
  ArchiveNotConfigured: new ActionError.ArchiveNotConfigured({ detail, setting: "TRIGATE_ARCHIVE" }),
  ArchiveUnavailable: new ActionError.ArchiveUnavailable({ detail, reason: "away" }),
  PayloadTooLarge: new ActionError.PayloadTooLarge({ detail, limit: 1_048_576 }),
  UpstreamUnavailable: new ActionError.UpstreamUnavailable({
    detail,
    upstream: "layer2",
    retryAfter: 3,
    attempts: 2
  }),
  UpstreamRateLimited: new ActionError.UpstreamRateLimited({ detail, upstream: "trading-api", retryAfter: 60 }),
  UpstreamTimeout: new ActionError.UpstreamTimeout({ detail, upstream: "token-chain", deadline: 10_000 }),
  UpstreamMalformed: new ActionError.UpstreamMalformed({
    detail,
    upstream: "trading-node",
    issue: "HTML (HTTP 200)"
  }),
  UpstreamForbidden: new ActionError.UpstreamForbidden({ detail, upstream: "layer2" }),
  CallReverted: new ActionError.CallReverted({ detail, upstream: "layer2", code: 3, data: "0x08c379a0" }),
  OutcomeUnknown: new ActionError.OutcomeUnknown({
    detail,
    upstream: "trading-api",
    nonce,
    signer,
    advice: "Resend the identical bytes"
  })
}
