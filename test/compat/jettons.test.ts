/** `@ton/ton` reads and moves a jetton of the sandbox, whose contracts run in a real virtual machine. */
import { assert, describe, it } from "@effect/vitest"
import { Address, beginCell, Cell, comment, Dictionary, internal, toNano } from "@ton/core"
import { keyPairFromSeed } from "@ton/crypto"
import { JettonMaster, JettonWallet, TonClient, WalletContractV4 } from "@ton/ton"
import { tokenKey, tokens } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import { at } from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { rejection } from "./rejection.ts"

const keys = keyPairFromSeed(Buffer.from(tokenKey.seed, "hex"))
const wallet = WalletContractV4.create({ workchain: 0, publicKey: keys.publicKey })
const recipient = Address.parseRaw(`0:${"11".repeat(32)}`)

/** `transfer` of TEP-74. */
const transfer = (amount: bigint) =>
  beginCell()
    .storeUint(0x0f8a7ea5, 32)
    .storeUint(7, 64)
    .storeCoins(amount)
    .storeAddress(recipient)
    .storeAddress(wallet.address)
    .storeMaybeRef(null)
    .storeCoins(1n)
    .storeMaybeRef(comment("rent"))
    .endCell()

const opened = Effect.gen(function*() {
  const { url } = yield* hostedGateway({ TRIGATE_ACCESS_LOG: "off" })
  const ton = new TonClient({ endpoint: `${url}/api/v2/jsonRPC` })
  const master = ton.open(JettonMaster.create(Address.parse(tokens.onchain)))
  const walletOf = (owner: Address) =>
    Effect.promise(async () => ton.open(JettonWallet.create(await master.getWalletAddress(owner))))
  return { url, ton, master, walletOf, sender: ton.open(wallet) }
})

describe("@ton/ton over the sandbox", () => {
  it.live("reads a jetton and moves some of it: balances, notification, excess and history follow", () =>
    Effect.gen(function*() {
      const { master, sender, ton, url, walletOf } = yield* opened
      assert.strictEqual(wallet.address.toString(), tokenKey.wallet)
      const data = yield* Effect.promise(() => master.getJettonData())
      assert.strictEqual(data.totalSupply, 1_180_591_620_717_411_303_424_123n)
      assert.isTrue(data.mintable)
      assert.strictEqual(data.adminAddress.toString(), tokens.admin)

      const own = yield* walletOf(wallet.address)
      assert.strictEqual(own.address.toString(), tokenKey.jettonWallet)
      assert.strictEqual(yield* Effect.promise(() => own.getBalance()), 1_000_000_000_000n)
      const theirs = yield* walletOf(recipient)
      assert.strictEqual(yield* Effect.promise(() => theirs.getBalance()), 0n)

      const seqno = yield* Effect.promise(() => sender.getSeqno())
      assert.strictEqual(seqno, 0)
      yield* Effect.promise(() =>
        sender.sendTransfer({
          seqno,
          secretKey: keys.secretKey,
          messages: [internal({ to: own.address, value: toNano("0.2"), body: transfer(250_000_000_000n) })]
        })
      )
      assert.strictEqual(yield* Effect.promise(() => sender.getSeqno()), 1)
      assert.strictEqual(yield* Effect.promise(() => own.getBalance()), 750_000_000_000n)
      assert.strictEqual(yield* Effect.promise(() => theirs.getBalance()), 250_000_000_000n)

      // the owner has the notification, and nothing else
      const [notified, ...others] = yield* Effect.promise(() => ton.getTransactions(recipient, { limit: 10 }))
      assert.deepStrictEqual(others, [])
      const body = notified?.inMessage?.body.beginParse()
      assert.deepStrictEqual([body?.loadUint(32), body?.loadUint(64), body?.loadCoins()], [
        0x7362d09c,
        7,
        250_000_000_000n
      ])
      // the sender's wallet: its message came from outside, and what was left over came back
      const [excess, sent] = yield* Effect.promise(() => ton.getTransactions(wallet.address, { limit: 10 }))
      assert.strictEqual(sent?.inMessage?.info.type, "external-in")
      assert.strictEqual(excess?.inMessage?.body.beginParse().loadUint(32), 0xd53276db)
      assert.strictEqual(excess?.prevTransactionLt, sent?.lt)

      // what the gateway says of the two wallets follows
      const read = (address: string) =>
        Effect.promise(() =>
          fetch(`${url}/any-key/api/v2/jsonRPC`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ id: 1, jsonrpc: "2.0", method: "getTokenData", params: { address } })
          }).then((response) => response.text())
        )
      assert.include(yield* read(own.address.toString()), "\"balance\":\"750000000000\"")
      assert.include(yield* read(theirs.address.toString()), `"owner":"${recipient.toString()}"`)
    }))

  it.live("is refused what the contracts refuse", () =>
    Effect.gen(function*() {
      const { sender, walletOf } = yield* opened
      const own = yield* walletOf(wallet.address)
      const send = (seqno: number, secretKey: Buffer, amount: bigint) => () =>
        sender.sendTransfer({
          seqno,
          secretKey,
          messages: [internal({ to: own.address, value: toNano("0.2"), body: transfer(amount) })]
        })
      // another key: the wallet does not accept the message
      const stranger = keyPairFromSeed(Buffer.alloc(32, 9))
      const refused = yield* rejection(send(0, stranger.secretKey, 1n))
      assert.include(String(refused), "500")
      // more than the balance: the jetton wallet bounces the message, and the balance stays
      yield* Effect.promise(send(0, keys.secretKey, 1_000_000_000_001n))
      assert.strictEqual(yield* Effect.promise(() => own.getBalance()), 1_000_000_000_000n)
      assert.strictEqual(yield* Effect.promise(() => sender.getSeqno()), 1)
      // the same message again: its number is used up
      assert.include(String(yield* rejection(send(0, keys.secretKey, 1n))), "500")
    }))

  it.live("reads one state of an account by each method, the fees of a message before it, and its way after it", () =>
    Effect.gen(function*() {
      const { sender, ton, url } = yield* opened
      const to = Address.parse(tokens.wallet)
      const read = (method: string, params: object): Effect.Effect<unknown> =>
        Effect.promise(async () => {
          const response = await fetch(`${url}/api/v2/jsonRPC`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ id: 1, jsonrpc: "2.0", method, params })
          })
          return at(await response.json(), "result")
        })
      const message = wallet.createTransfer({
        seqno: 0,
        secretKey: keys.secretKey,
        messages: [internal({ to, value: toNano("1.5"), bounce: false })]
      })
      const { source_fees: fees } = yield* Effect.promise(() =>
        ton.estimateExternalMessageFee(wallet.address, {
          body: message,
          initCode: wallet.init.code,
          initData: wallet.init.data,
          ignoreSignature: true
        })
      )
      assert.deepStrictEqual(yield* read("getAddressState", { address: tokenKey.wallet }), "uninitialized")
      yield* Effect.promise(() => sender.send(message))

      for (const address of [wallet.address, to]) {
        const account = { address: address.toString() }
        const [information, extended, ofWallet] = yield* Effect.all([
          read("getAddressInformation", account),
          read("getExtendedAddressInformation", account),
          read("getWalletInformation", account)
        ])
        const balance = yield* read("getAddressBalance", account)
        const last = at(information, "last_transaction_id")
        assert.deepStrictEqual(
          [information, extended, ofWallet].map((each) => [at(each, "balance"), at(each, "last_transaction_id")]),
          Array.from({ length: 3 }, () => [balance, last])
        )
        const [newest] = yield* Effect.promise(() => ton.getTransactions(address, { limit: 1 }))
        assert.strictEqual(at(last, "lt"), String(newest?.lt))
        assert.deepInclude(ofWallet, { wallet: true, account_state: "active", wallet_type: "wallet v4 r2" })
        assert.deepStrictEqual(at(extended, "account_state"), {
          "@type": "wallet.v4.accountState",
          wallet_id: "698983191",
          seqno: address === to ? 2 : 1
        })
      }
      assert.strictEqual(at(yield* read("getWalletInformation", { address: tokenKey.wallet }), "seqno"), 1)

      const [sent] = yield* Effect.promise(() => ton.getTransactions(wallet.address, { limit: 1 }))
      const [out] = sent?.outMessages.values() ?? []
      const createdLt = out?.info.type === "internal" ? String(out.info.createdLt) : ""
      const spent = 100_000_000_000n - BigInt(String(yield* read("getAddressBalance", { address: tokenKey.wallet })))
      // the message pays its way from its value
      assert.strictEqual(spent, toNano("1.5") + BigInt(fees.in_fwd_fee + fees.storage_fee + fees.gas_fee))
      assert.strictEqual(
        out?.info.type === "internal" ? out.info.value.coins : 0n,
        toNano("1.5") - BigInt(fees.fwd_fee)
      )
      const result = yield* Effect.promise(() => ton.tryLocateResultTx(wallet.address, to, createdLt))
      const source = yield* Effect.promise(() => ton.tryLocateSourceTx(wallet.address, to, createdLt))
      assert.deepStrictEqual([result.inMessage?.info.src?.toString(), source.lt], [tokenKey.wallet, sent?.lt])
      assert.include(String(yield* rejection(() => ton.tryLocateResultTx(wallet.address, to, "1"))), "404")

      const prices = at(yield* read("getConfigParam", { config_id: 21 }), "config", "bytes")
      const all = Cell.fromBase64(String(at(yield* read("getConfigAll", {}), "config", "bytes")))
      const dictionary = all.beginParse().loadDictDirect(Dictionary.Keys.Int(32), Dictionary.Values.Cell())
      assert.strictEqual(prices, dictionary.get(21)?.toBoc().toString("base64"))
    }))
})
