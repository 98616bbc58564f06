import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { contracts, keys, traderStake } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { act, askEvm, atStart, bigBlocks, delegate, post, start, submit } from "./venue.ts"

const { agent, jailedValidator, multiSigUser, stranger, trader, validator } = keys

const balances = Effect.gen(function*() {
  const { venue } = yield* SandboxState
  const account = Option.getOrThrow(yield* venue.account(trader.address))
  const target = Option.getOrThrow(yield* venue.validator(validator.address))
  return { free: account.stake, delegated: account.delegations.get(validator.address)?.wei, stake: target.stake }
})

const usesBigBlocks = (address: `0x${string}`) =>
  Effect.map(
    askEvm("eth_usingBigBlocks", JSON.stringify([address])),
    (answer) => answer._tag === "Result" ? answer.result.text : answer.message
  )

describe("who acts", () => {
  it.effect("a stranger is told the address that its signature recovers to", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(
        yield* act(stranger, bigBlocks(true)),
        `err: User or API Wallet ${stranger.address} does not exist.`
      )
    })))

  it.effect("a body changed after signing recovers to nobody, never to the signer", () =>
    atStart(Effect.gen(function*() {
      const signed = yield* SandboxSigner.signAction(trader, { nonce: start, action: bigBlocks(true) })
      const answer = yield* submit({ ...signed, action: bigBlocks(false) })
      assert.match(answer, /^err: User or API Wallet 0x[0-9a-f]{40} does not exist\.$/u)
      assert.notInclude(answer, trader.address)
    })))

  it.effect("an API wallet acts for its account, but may not sign for its stake", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* act(agent, bigBlocks(true)), "ok")
      assert.strictEqual(yield* usesBigBlocks(trader.address), "true")
      assert.strictEqual(yield* usesBigBlocks(agent.address), "false")
      assert.strictEqual(
        yield* act(agent, delegate(validator.address, 1n, start)),
        `err: Must deposit before performing actions. User: ${agent.address}`
      )
    })))

  it.effect("a leader acts for its vault, and for no other", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      const vault = "0x00000000000000000000000000000000000000AA"
      yield* venue.addVault(vault, trader.address)
      assert.strictEqual(yield* act(trader, bigBlocks(true), { vaultAddress: vault }), "ok")
      assert.strictEqual(yield* usesBigBlocks(vault), "true")
      assert.strictEqual(yield* usesBigBlocks(trader.address), "false")
      assert.strictEqual(
        yield* act(validator, bigBlocks(true), { vaultAddress: vault }),
        `err: Vault not registered: ${vault}`
      )
      assert.strictEqual(
        yield* act(trader, bigBlocks(true), { vaultAddress: contracts.none, nonce: start + 1 }),
        `err: Vault not registered: ${contracts.none}`
      )
    })))

  it.effect("a multi-sig account does not act by one signature", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* act(multiSigUser, bigBlocks(true)), "err: Multi-sig required")
      assert.strictEqual(yield* usesBigBlocks(multiSigUser.address), "false")
    })))
})

describe("what an action does", () => {
  it.effect("a delegation moves stake, in wei, there and back", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* act(trader, delegate(validator.address, 30_000_000_001n, start)), "ok")
      assert.deepStrictEqual(yield* balances, {
        free: 69_999_999_999n,
        delegated: 30_000_000_001n,
        stake: 30_000_000_001n
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* act(trader, delegate(validator.address, 1n, start + 1_000, true)), "ok")
      assert.deepStrictEqual(yield* balances, {
        free: 70_000_000_000n,
        delegated: 30_000_000_000n,
        stake: 30_000_000_000n
      })
    })))

  it.effect("wei above 2^53 keep their digits", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* venue.fundAccount(trader.address, 2n ** 60n + 1n)
      assert.strictEqual(yield* act(trader, delegate(validator.address, 2n ** 60n + 1n, start)), "ok")
      assert.deepStrictEqual(yield* balances, {
        free: traderStake,
        delegated: 1_152_921_504_606_846_977n,
        stake: 1_152_921_504_606_846_977n
      })
    })))

  it.effect("nobody delegates more than there is, or to nobody", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(
        yield* act(trader, delegate(validator.address, traderStake + 1n, start)),
        "err: Insufficient stake"
      )
      assert.strictEqual(
        yield* act(trader, delegate(validator.address, 1n, start + 1, true), { nonce: start + 1 }),
        "err: Insufficient stake"
      )
      assert.strictEqual(
        yield* act(trader, delegate(trader.address, 1n, start + 2), { nonce: start + 2 }),
        "err: Unknown validator"
      )
      assert.deepStrictEqual(yield* balances, { free: traderStake, delegated: undefined, stake: 0n })
    })))

  it.effect("a validator jails and frees itself, anybody else is none", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      const jailed = (address: `0x${string}`) =>
        Effect.map(venue.validator(address), (found) => Option.getOrThrow(found).jailed)
      assert.isTrue(yield* jailed(jailedValidator.address))
      assert.strictEqual(yield* act(jailedValidator, { type: "CSignerAction", unjailSelf: null }), "ok")
      assert.isFalse(yield* jailed(jailedValidator.address))
      assert.strictEqual(yield* act(validator, { type: "CSignerAction", jailSelf: null }), "ok")
      assert.isTrue(yield* jailed(validator.address))
      assert.strictEqual(
        yield* act(trader, { type: "CSignerAction", unjailSelf: null }),
        "err: Signer invalid or inactive for current epoch"
      )
    })))

  it.effect("the big-block flag stays until it is unset, and is read back", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* usesBigBlocks(trader.address), "false")
      assert.strictEqual(yield* act(trader, bigBlocks(true)), "ok")
      assert.strictEqual(yield* usesBigBlocks("0xF39FD6E51AAD88F6F4CE6AB8827279CFFFB92266"), "true")
      assert.strictEqual(yield* act(trader, bigBlocks(false), { nonce: start + 1 }), "ok")
      assert.strictEqual(yield* usesBigBlocks(trader.address), "false")
    })))
})

describe("refusals in the venue's words", () => {
  it.effect("another network, another nonce, an expiry that has passed", () =>
    atStart(Effect.gen(function*() {
      const testnet = yield* SandboxSigner.signAction(
        trader,
        { nonce: start, action: { ...delegate(validator.address, 1n, start), hyperliquidChain: "Testnet" } },
        VenueProfile.testnet
      )
      assert.strictEqual(yield* submit(testnet), "err: Mainnet and testnet require different signature.")
      assert.strictEqual(
        yield* act(trader, delegate(validator.address, 1n, start + 1)),
        "err: Nonce mismatch."
      )
      assert.strictEqual(
        yield* act(trader, bigBlocks(true), { expiresAfter: start - 1 }),
        "err: Action already expired"
      )
      assert.strictEqual(yield* act(trader, bigBlocks(true), { expiresAfter: start }), "ok")
    })))

  it.effect("an account that has sent all it may", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* venue.limitRequests(trader.address, 1)
      assert.strictEqual(yield* act(trader, bigBlocks(true)), "ok")
      assert.strictEqual(
        yield* act(trader, bigBlocks(false), { nonce: start + 1 }),
        "err: Too many cumulative requests sent (2 > 1) for cumulative volume traded $0.00. " +
          "Place taker orders to free up 1 request per USDC traded."
      )
    })))

  it.effect("shapes that its parser does not know are HTTP 422, bodies that are no JSON HTTP 400", () =>
    atStart(Effect.gen(function*() {
      const refusal = "422 Failed to deserialize the JSON body into the target type"
      const { signature } = yield* SandboxSigner.signAction(trader, { nonce: start, action: bigBlocks(true) })
      const withAction = (action: unknown) => post(Json.stringify({ action, nonce: start, signature }))
      const { hyperliquidChain, ...rest } = delegate(validator.address, 1n, start)
      for (
        const action of [
          { type: "evmUserModify", modifications: [] },
          { type: "CSignerAction", payload: "unjailSelf" },
          { type: "tokenDelegate", validator: validator.address, amount: "1", isUndelegate: false },
          { ...rest, venueChain: hyperliquidChain },
          { ...rest, hyperliquidChain, wei: "1" },
          {}
        ]
      ) {
        assert.strictEqual(yield* withAction(action), refusal)
      }
      assert.strictEqual(
        yield* withAction({ type: "later", asset: 0 }),
        `${refusal}: the sandbox does not support "later"`
      )
      assert.strictEqual(yield* post("[]"), refusal)
      assert.strictEqual(yield* post("{"), "400 Failed to parse the request body as JSON")
    })))
})
