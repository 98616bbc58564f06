/** `@ton/ton` against a gateway process: only the endpoint is changed. */
import { assert, describe, it } from "@effect/vitest"
import { beginCell, external, internal, storeMessage, toNano } from "@ton/core"
import { keyPairFromSeed } from "@ton/crypto"
import { JettonMaster, TonClient, WalletContractV4 } from "@ton/ton"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { RecordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"
import * as Ton from "./tonChain.ts"

const client = "@ton/ton 16.3.0"

/** The library over a gateway that has a server of the chain behind it. */
const connected = Effect.fnUntraced(function*(name: string) {
  const chain = yield* Ton.tonChain
  const url = yield* session({ name: `ton/${name}`, client, upstreams: { tokens: chain.url } })
  return { chain, ton: new TonClient({ endpoint: `${url}/api/v2/jsonRPC` }) }
})

/** What the chain was asked, as method and params. */
const asked = ({ seen }: RecordingUpstream) =>
  seen.map(({ body }) => [JsonParts.value(body, "method"), JsonParts.value(body, "params")])

const account = { address: Ton.wallet.toString() }
const keys = keyPairFromSeed(Buffer.alloc(32, 7))

describe("@ton/ton", () => {
  it.live("reads an account: its state, balance, and whether it is deployed", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("account")
      const state = yield* Effect.promise(() => ton.getContractState(Ton.wallet))
      assert.deepStrictEqual({ ...state, code: state.code?.length, data: state.data?.toString("base64") }, {
        balance: 14_020_735n,
        extra_currencies: undefined,
        state: "active",
        code: 740,
        data: "te6cckEBAQEAKwAAUQAAAAIpqaMXC4yW0mQyIVSJAFroGZSCTwJNiZWBrrQ0WTHPLeJONxtAH8te9g==",
        lastTransaction: { lt: "48756545000001", hash: "JseckUUQ5BOUW3fAmggsXknXxQGwtoVwuo1/qTuDRDo=" },
        blockId: { workchain: -1, shard: "-9223372036854775808", seqno: 39_984_035 },
        timestampt: 1_724_742_404
      })
      assert.strictEqual(yield* Effect.promise(() => ton.getBalance(Ton.wallet)), 14_020_735n)
      assert.isTrue(yield* Effect.promise(() => ton.isContractDeployed(Ton.wallet)))
      assert.deepStrictEqual(asked(chain), Array.from({ length: 3 }, () => ["getAddressInformation", account]))
    }))

  it.live("reads blocks: the newest, its shards, and their transactions", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("blocks")
      assert.deepStrictEqual(yield* Effect.promise(() => ton.getMasterchainInfo()), {
        workchain: -1,
        shard: "-9223372036854775808",
        initSeqno: 0,
        latestSeqno: 39_984_035
      })
      const { seqno, shard, workchain } = Ton.shard
      assert.deepStrictEqual(yield* Effect.promise(() => ton.getWorkchainShards(39_984_035)), [{
        workchain,
        shard,
        seqno
      }])
      const transactions = yield* Effect.promise(() => ton.getShardTransactions(workchain, seqno, shard))
      assert.deepStrictEqual(transactions.map(({ account, hash, lt }) => [account.toString(), lt, hash]), [
        [Ton.wallet.toString(), Ton.transaction.lt, Ton.transaction.hash]
      ])
      assert.deepStrictEqual(asked(chain), [
        ["getMasterchainInfo", {}],
        ["shards", { seqno: 39_984_035 }],
        ["getBlockTransactions", { workchain, seqno, shard }]
      ])
    }))

  it.live("reads transactions: a page, one by its id, and those at both ends of a message", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("transactions")
      const { hash, lt } = Ton.transaction
      const hex = Buffer.from(hash, "base64").toString("hex")
      const read = [
        () => ton.getTransactions(Ton.wallet, { limit: 2, archival: true }).then(([first]) => first),
        () => ton.getTransactions(Ton.wallet, { limit: 1, lt, hash, inclusive: true }).then(([first]) => first),
        () => ton.getTransaction(Ton.wallet, lt, hash),
        () => ton.tryLocateResultTx(Ton.admin, Ton.wallet, "48756545000000"),
        () => ton.tryLocateSourceTx(Ton.admin, Ton.wallet, "48756545000000")
      ]
      for (const call of read) {
        const transaction = yield* Effect.promise(call)
        assert.strictEqual(transaction?.hash().toString("base64"), hash)
        assert.strictEqual(transaction?.inMessage?.info.src?.toString(), Ton.admin.toString())
      }
      // the library leaves out the transaction that it starts behind
      assert.deepStrictEqual(yield* Effect.promise(() => ton.getTransactions(Ton.wallet, { limit: 1, lt, hash })), [])
      assert.isNull(yield* Effect.promise(() => ton.getTransaction(Ton.wallet, "1", hash)))
      const message = { source: Ton.admin.toString(), destination: account.address, created_lt: "48756545000000" }
      assert.deepStrictEqual(asked(chain), [
        ["getTransactions", { ...account, limit: 2, archival: true }],
        ["getTransactions", { ...account, limit: 1, lt, hash: hex }],
        ["getTransactions", { ...account, lt, hash: hex, limit: 1 }],
        ["tryLocateResultTx", message],
        ["tryLocateSourceTx", message],
        ["getTransactions", { ...account, limit: 2, lt, hash: hex }],
        ["getTransactions", { ...account, lt: "1", hash: hex, limit: 1 }]
      ])
    }))

  it.live("runs get methods, with a stack and with the exit code of one that a contract does not have", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("get-methods")
      const slice = beginCell().storeAddress(Ton.admin).endCell()
      const seqno = yield* Effect.promise(() => ton.runMethod(Ton.wallet, "seqno"))
      assert.deepStrictEqual([seqno.gas_used, seqno.stack.readBigNumber()], [549, 2n])
      const called = yield* Effect.promise(() =>
        ton.callGetMethod(Ton.jetton, "get_wallet_address", [{ type: "slice", cell: slice }])
      )
      assert.strictEqual(called.stack.readAddress().toString(), account.address)
      const failed = yield* Effect.promise(() => ton.runMethodWithError(Ton.wallet, "nonsense"))
      assert.deepStrictEqual([failed.exit_code, failed.stack.remaining], [11, 0])
      const thrown = yield* rejection(() => ton.runMethod(Ton.wallet, "nonsense", [{ type: "int", value: -5n }]))
      assert.strictEqual(String(thrown), "Error: Unable to execute get method. Got exit_code: 11")
      assert.deepStrictEqual(asked(chain), [
        ["runGetMethod", { ...account, method: "seqno", stack: [] }],
        ["runGetMethod", {
          address: Ton.jetton.toString(),
          method: "get_wallet_address",
          stack: [["tvm.Slice", slice.toBoc().toString("base64")]]
        }],
        ["runGetMethod", { ...account, method: "nonsense", stack: [] }],
        ["runGetMethod", { ...account, method: "nonsense", stack: [["num", "-5"]] }]
      ])
    }))

  it.live("reads a jetton through its contract, all digits of its supply", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("jetton")
      const master = ton.open(JettonMaster.create(Ton.jetton))
      const data = yield* Effect.promise(() => master.getJettonData())
      assert.strictEqual(data.totalSupply, Ton.supply)
      assert.isTrue(data.mintable)
      assert.strictEqual(data.adminAddress.toString(), Ton.admin.toString())
      const content = data.content.beginParse()
      assert.strictEqual(content.loadUint(8), 1)
      assert.strictEqual(content.loadStringTail(), "https://token.example/1.json")
      assert.strictEqual(
        (yield* Effect.promise(() => master.getWalletAddress(Ton.admin))).toString(),
        account.address
      )
      assert.deepStrictEqual(asked(chain).map(([method]) => method), ["runGetMethod", "runGetMethod"])
    }))

  it.live("opens a wallet and sends a transfer of it, once, byte for byte", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("wallet")
      const opened = ton.open(WalletContractV4.create({ workchain: 0, publicKey: keys.publicKey }))
      assert.strictEqual(yield* Effect.promise(() => opened.getBalance()), 14_020_735n)
      const seqno = yield* Effect.promise(() => opened.getSeqno())
      assert.strictEqual(seqno, 2)
      const transfer = opened.createTransfer({
        seqno,
        secretKey: keys.secretKey,
        messages: [internal({ to: Ton.admin, value: toNano("0.05"), body: "hello" })]
      })
      yield* Effect.promise(() => opened.send(transfer))
      assert.deepStrictEqual(asked(chain).map(([method]) => method), [
        "getAddressInformation",
        "getAddressInformation",
        "runGetMethod",
        "getAddressInformation",
        "sendBoc"
      ])
      const message = beginCell().store(storeMessage(external({ to: opened.address, body: transfer }))).endCell()
      assert.deepStrictEqual(asked(chain)[4], ["sendBoc", { boc: message.toBoc().toString("base64") }])
    }))

  it.live("sends messages and files once each, and estimates what one would cost", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* connected("messages")
      const body = beginCell().storeUint(1, 32).endCell()
      const file = body.toBoc()
      yield* Effect.promise(() => ton.sendFile(file))
      yield* Effect.promise(() => ton.sendMessage(external({ to: Ton.wallet, body })))
      yield* Effect.promise(() =>
        ton.sendExternalMessage(WalletContractV4.create({ workchain: 0, publicKey: keys.publicKey }), body)
      )
      const fees = yield* Effect.promise(() =>
        ton.estimateExternalMessageFee(Ton.wallet, { body, initCode: null, initData: null, ignoreSignature: true })
      )
      assert.deepStrictEqual(fees.source_fees, {
        "@type": "fees",
        in_fwd_fee: 1_000,
        storage_fee: 2,
        gas_fee: 300,
        fwd_fee: 40
      })
      assert.deepStrictEqual(asked(chain).map(([method]) => method), [
        "sendBoc",
        "sendBoc",
        "getAddressInformation",
        "sendBoc",
        "estimateFee"
      ])
      assert.deepStrictEqual(asked(chain)[0], ["sendBoc", { boc: file.toString("base64") }])
      assert.deepStrictEqual(asked(chain)[4], ["estimateFee", {
        ...account,
        body: file.toString("base64"),
        init_data: "",
        init_code: "",
        ignore_chksig: true
      }])
    }))

  it.live("reads an account of the sandbox, and is told of what the sandbox has no data for", () =>
    Effect.gen(function*() {
      const endpoint = `${yield* session({ name: "ton/sandbox", client })}/api/v2/jsonRPC`
      const ton = new TonClient({ endpoint })
      // this account is described only: what runs code takes time to load, and a recording takes place at one instant
      assert.strictEqual(yield* Effect.promise(() => ton.getBalance(Ton.wallet)), 14_020_735n)
      assert.isTrue(yield* Effect.promise(() => ton.isContractDeployed(Ton.wallet)))
      const { stack } = yield* Effect.promise(() => ton.runMethod(Ton.wallet, "seqno"))
      assert.strictEqual(stack.readNumber(), 2)
      const missing = yield* rejection(() => ton.runMethod(Ton.wallet, "get_jetton_data"))
      assert.strictEqual(String(missing), "Error: Unable to execute get method. Got exit_code: 11")
      const error = yield* rejection(() => ton.getWorkchainShards(1))
      assert.include(String(error), `"error":"Not Found: the sandbox does not support shards"`)
    }))
})
