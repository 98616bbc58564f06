/** A token-chain server for the tests of its clients: what it answers to each method, in the envelope of either family. */
import { Address, beginCell } from "@ton/core"
import { tokens } from "@trigate/sandbox/SandboxExamples"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"

export const wallet = Address.parse(tokens.wallet)
export const admin = Address.parse(tokens.admin)
export const jetton = Address.parse(tokens.onchain)

/** A transaction in which the wallet is sent 5 nanotons by the admin, put together with `@ton/core`. */
export const transaction = {
  lt: "48756545000001",
  hash: "RASrtP52wLWeNGLCLwUpb12rmX0qGptz+2f3ydp9DCQ=",
  data:
    "te6cckEBBQEA/wADsX12dnOS5wNdhLpvg5YLk5n2JDDrzXhQoeKwQ9LYJsI3AAACxYBIuSQQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABmzXsEAAFCBoAQMEAQGgAgCnSAFUW9mta3HVX1uUSpnCcoBE7Zs9BIFj3+lKAcdFo9wCBwA12dnOS5wNdhLpvg5YLk5n2JDDrzXhQoeKwQ9LYJsI3AQUAgIAAAAAAAAAFAAAAChAAIJyAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQECAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgADCIKCVOWF"
}

const described = JSON.stringify({
  "@type": "raw.transaction",
  data: transaction.data,
  utime: 1_724_742_404,
  transaction_id: { "@type": "internal.transactionId", lt: transaction.lt, hash: transaction.hash },
  fee: "3",
  storage_fee: "0",
  other_fee: "3",
  in_msg: {
    "@type": "raw.message",
    source: tokens.admin,
    destination: tokens.wallet,
    value: "5",
    fwd_fee: "1",
    ihr_fee: "0",
    created_lt: "48756545000000",
    body_hash: "lqKW0iTyhcZ77pPDD4owkVfw2qNdxbh+QQt4YwoJz8c=",
    msg_data: { "@type": "msg.dataRaw", body: "" }
  },
  out_msgs: []
})

const block = (workchain: number, shard: string, seqno: number) => ({
  "@type": "ton.blockIdExt",
  workchain,
  shard,
  seqno,
  root_hash: "4ufbBY6tzDif9bWxIlsn+ZCQfS/dXOsdRb6/pPrIb9I=",
  file_hash: "JseckUUQ5BOUW3fAmggsXknXxQGwtoVwuo1/qTuDRDo="
})

export const masterchain = block(-1, "-9223372036854775808", 39_984_035)
export const shard = block(0, "6917529027641081856", 45_893_220)

/** The recorded result of a method that asks about an account. */
const account = (file: string): string => {
  const call = JsonParts.rows(Recordings.text("ton-account-bodies.json"), ["calls"])
    .find((row) => String(JsonParts.value(row, "file")).endsWith(`/${file}.md`))
  return JsonParts.raw(call ?? "", ["body", "result"])
}

/** What is known of an account with a balance. */
export const informationOf = (balance: bigint): string =>
  account("getaddressinformation").replace(/"balance":\s*"[0-9]+"/u, `"balance":"${balance}"`)

const cell = (bytes: string) => ["cell", { bytes, object: { data: { b64: "", len: 0 }, refs: [] } }]

const content = beginCell().storeUint(1, 8).storeStringTail("https://token.example/1.json").endCell()
const code = beginCell().storeUint(7, 8).endCell()

const ran = (exitCode: number, stack: ReadonlyArray<unknown>) =>
  JSON.stringify({ "@type": "smc.runResult", gas_used: 549, stack, exit_code: exitCode })

/** Supply of the token: no double holds it. */
export const supply = 123_456_789_012_345_678_901n

/** Results of the contracts' get methods, by name; a contract answers any other one with exit code 11. */
const getMethods: { readonly [name: string]: string } = {
  seqno: ran(0, [["num", "0x2"]]),
  get_jetton_data: ran(0, [
    ["num", `0x${supply.toString(16)}`],
    ["num", "-0x1"],
    cell(beginCell().storeAddress(admin).endCell().toBoc().toString("base64")),
    cell(content.toBoc().toString("base64")),
    cell(code.toBoc().toString("base64"))
  ]),
  get_wallet_address: ran(0, [cell(beginCell().storeAddress(wallet).endCell().toBoc().toString("base64"))])
}

const fees = { "@type": "fees", in_fwd_fee: 1_000, storage_fee: 2, gas_fee: 300, fwd_fee: 40 }

/** The raw result of each method, from its request. */
const results: { readonly [method: string]: (request: string) => string } = {
  getAddressInformation: () => account("getaddressinformation"),
  getMasterchainInfo: () =>
    JSON.stringify({
      "@type": "blocks.masterchainInfo",
      last: masterchain,
      state_root_hash: "JseckUUQ5BOUW3fAmggsXknXxQGwtoVwuo1/qTuDRDo=",
      init: block(-1, "0", 0)
    }),
  shards: () => JSON.stringify({ "@type": "blocks.shards", shards: [shard] }),
  getBlockTransactions: () =>
    JSON.stringify({
      "@type": "blocks.transactions",
      id: shard,
      req_count: 40,
      incomplete: false,
      transactions: [{
        "@type": "blocks.shortTxId",
        mode: 135,
        account: wallet.toRawString(),
        lt: transaction.lt,
        hash: transaction.hash
      }]
    }),
  getTransactions: () => `[${described}]`,
  tryLocateResultTx: () => described,
  tryLocateSourceTx: () => described,
  runGetMethod: (request) => getMethods[String(JsonParts.value(request, "params", "method"))] ?? ran(11, []),
  estimateFee: () => JSON.stringify({ "@type": "query.fees", source_fees: fees, destination_fees: [] }),
  sendBoc: () => `{"@type":"ok"}`
}

/** The envelope of the newer servers has an extra and neither id nor version. */
const answer = (request: string): Reply => {
  const result = results[String(JsonParts.value(request, "method"))]
  return result === undefined
    ? { status: 404, body: `{"ok":false,"error":"Not Found","code":404,"@extra":"_"}` }
    : { body: `{"ok":true,"result":${result(request)},"@extra":"1724742614.8:5:0.5"}` }
}

/** A server of the token chain. */
export const tonChain = recordingUpstream(({ body }) => answer(body))

/** A server that answers everything in one way. */
export const answering = (reply: Reply) => recordingUpstream(() => reply)
