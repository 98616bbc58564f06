/** Validators: their registration, profile, signer and votes, and the stake that accounts delegate to them. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { act, ask, askAt, listOf } from "./trader.ts"
import { atStart } from "./venue.ts"

const owner = `0x${"d".repeat(40)}` as const
const delegator = `0x${"2".repeat(40)}` as const
const signer = `0x${"5".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const hype = 10n ** 8n

const registration = {
  node_ip: { Ip: "1.2.3.4" },
  name: "mine",
  description: "A validator of mine",
  delegations_disabled: false,
  commission_bps: 500,
  signer
}

const register = (profile: object = {}, rest: object = {}, user: `0x${string}` = owner) =>
  act(user, "CValidatorAction", {
    register: { profile: { ...registration, ...profile }, unjailed: false, initial_wei: 1_000_000_000, ...rest }
  })

const unchanged = {
  node_ip: null,
  name: null,
  description: null,
  unjailed: false,
  disable_delegations: null,
  commission_bps: null,
  signer: null
}

const changeProfile = (members: object, user: `0x${string}` = owner) =>
  act(user, "CValidatorAction", { changeProfile: { ...unchanged, ...members } })

const delegate = (user: `0x${string}`, wei: number, isUndelegate = false) =>
  act(user, "tokenDelegate", { ...chain, validator: owner, wei, isUndelegate, nonce: 1 })

const summary = Effect.map(
  ask({ type: "validatorSummaries" }),
  (rows) => listOf(rows).find((row) => JsonParts.at(row, "validator") === owner)
)

const withStake = Effect.gen(function*() {
  const { venue } = yield* SandboxState
  for (const user of [owner, delegator, signer]) yield* venue.fundAccount(user, 100n * hype)
})

describe("a validator", () => {
  it.effect("is registered with its own stake, and listed with its profile", () =>
    atStart(Effect.gen(function*() {
      yield* withStake
      assert.strictEqual(yield* register({}, { initial_wei: 10_000_000_001 }), "Insufficient stake")
      assert.strictEqual(yield* register({ delegations_disabled: true }), "Validator has delegations disabled")
      assert.strictEqual(yield* register({ commission_bps: 10_001 }), "Invalid validator commission")
      assert.strictEqual(yield* register({ signer: keys.validator.address }), "Validator signer already used")
      assert.isUndefined(yield* summary)
      assert.isUndefined(yield* register())
      assert.strictEqual(yield* register(), "Validator already registered")
      assert.deepInclude(yield* summary, {
        signer,
        name: "mine",
        description: "A validator of mine",
        stake: 1_000_000_000,
        isJailed: true,
        isActive: false,
        commission: "0.05"
      })
      assert.strictEqual(yield* askAt({ type: "delegations", user: owner }, 0, "amount"), "10.0")
      assert.deepInclude(yield* ask({ type: "delegatorSummary", user: owner }), {
        delegated: "10.0",
        undelegated: "90.0"
      })
    })))

  it.effect("changes the members of its profile that are not null, and raises its commission to one percent at most", () =>
    atStart(Effect.gen(function*() {
      yield* withStake
      assert.strictEqual(yield* changeProfile({}), "Unknown validator")
      yield* register()
      assert.strictEqual(yield* changeProfile({ commission_bps: 501 }), "Invalid validator commission")
      assert.strictEqual(yield* changeProfile({ signer: keys.validator.address }), "Validator signer already used")
      assert.isUndefined(yield* changeProfile({ commission_bps: 20, unjailed: true, name: "other" }))
      assert.deepInclude(yield* summary, {
        name: "other",
        description: "A validator of mine",
        commission: "0.002",
        isJailed: false
      })
      assert.strictEqual(yield* changeProfile({ commission_bps: 101 }), "Invalid validator commission")
      yield* changeProfile({ commission_bps: 100, description: "new", signer: owner, node_ip: { Ip: "4.3.2.1" } })
      assert.deepInclude(yield* summary, { description: "new", commission: "0.01", signer: owner, isJailed: true })
      const { venue } = yield* SandboxState
      assert.strictEqual(Option.getOrThrow(yield* venue.validator(owner)).nodeIp, "4.3.2.1")
    })))

  it.effect("is jailed and freed by its signer alone", () =>
    atStart(Effect.gen(function*() {
      yield* withStake
      yield* register()
      const isJailed = Effect.map(summary, (row) => JsonParts.at(row, "isJailed"))
      const none = "Signer invalid or inactive for current epoch"
      assert.strictEqual(yield* act(owner, "CSignerAction", { unjailSelf: null }), none)
      assert.isUndefined(yield* act(signer, "CSignerAction", { unjailSelf: null }))
      assert.isFalse(yield* isJailed)
      assert.isUndefined(yield* act(signer, "CSignerAction", { jailSelf: null }))
      assert.isTrue(yield* isJailed)
    })))

  it.effect("accepts stake unless it has delegations disabled, and returns it when it is unregistered", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* withStake
      assert.strictEqual(yield* delegate(delegator, 1), "Unknown validator")
      yield* register()
      assert.isUndefined(yield* delegate(delegator, 3_000_000_000))
      yield* changeProfile({ disable_delegations: true })
      assert.strictEqual(yield* delegate(delegator, 1), "Validator has delegations disabled")
      assert.isUndefined(yield* delegate(delegator, 1_000_000_000, true))
      assert.strictEqual(JsonParts.at(yield* summary, "stake"), 3_000_000_000)
      assert.strictEqual(yield* act(delegator, "CValidatorAction", { unregister: null }), "Unknown validator")
      assert.isUndefined(yield* act(owner, "CValidatorAction", { unregister: null }))
      assert.isUndefined(yield* summary)
      for (const user of [owner, delegator]) {
        assert.strictEqual(Option.getOrThrow(yield* venue.account(user)).stake, 100n * hype)
        assert.deepStrictEqual(yield* ask({ type: "delegations", user }), [])
      }
      assert.deepStrictEqual(
        listOf(yield* ask({ type: "delegatorHistory", user: delegator })).map((row) =>
          JsonParts.at(row, "delta", "delegate", "isUndelegate")
        ),
        [true, true, false]
      )
      assert.isUndefined(yield* register())
    })))

  it.effect("votes on the risk-free rate, which no other account does", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* withStake
      yield* register()
      assert.isUndefined(yield* act(owner, "validatorL1Stream", { riskFreeRate: "0.04" }))
      assert.strictEqual(yield* act(delegator, "validatorL1Stream", { riskFreeRate: "0.04" }), "Unknown validator")
      assert.strictEqual(Option.getOrThrow(yield* venue.validator(owner)).riskFreeRate, "0.04")
    })))
})
