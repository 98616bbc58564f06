import { assert, describe, it } from "@effect/vitest"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as ActionForm from "@trigate/signing/unstable/actions/ActionForm"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"

const marks = { required: "", optional: "?", nullable: "!", oneOf: "|" } as const

/** An order as a reader would write it down: `?` may be absent, `!` may be null, `|` is one of several. */
const written = (order: CanonicalAction.ActionOrder): unknown =>
  Object.fromEntries([...order].map(([name, { presence, shape }]) => [`${name}${marks[presence]}`, content(shape)]))

const content = (shape: CanonicalAction.Shape): unknown => {
  switch (shape._tag) {
    case "Value":
      return shape.kind
    case "Words":
      return shape.words.join()
    case "Members":
      return shape.otherwise === undefined ? written(shape.order) : [content(shape.otherwise), written(shape.order)]
    case "Tuple":
      return shape.items.map(content)
    case "List":
      return { "[]": content(shape.item) }
  }
}

const l1 = (type: string) => CanonicalAction.l1(type) ?? assert.fail(type)

describe("the order in which the venue hashes members", () => {
  it("is derived from the schema: lists, words, forms of an object, and what may be absent", () => {
    const order = {
      a: "integer",
      b: "flag",
      p: "decimal",
      s: "decimal",
      r: "flag",
      t: {
        "limit|": { tif: "Gtc,Ioc,Alo,FrontendMarket" },
        "trigger|": { isMarket: "flag", triggerPx: "decimal", tpsl: "tp,sl" }
      },
      "c?": "cloid"
    }
    assert.deepStrictEqual(written(l1("order")), {
      type: "order",
      orders: { "[]": order },
      grouping: ["na,normalTpsl,positionTpsl", { p: "integer" }],
      "builder?": { b: "address", f: "integer" }
    })
    assert.deepStrictEqual(written(l1("modify")), { type: "modify", oid: "id", order, "a?": "mark" })
    assert.deepStrictEqual(written(l1("CSignerAction")), {
      type: "CSignerAction",
      "jailSelf|": "null",
      "unjailSelf|": "null"
    })
    assert.deepStrictEqual(written(l1("borrowLend")), {
      type: "borrowLend",
      operation: "supply,withdraw,borrow,repay",
      token: "integer",
      "amount!": "decimal"
    })
    assert.deepStrictEqual(content(l1("perpDeploy").get("setOracle")?.shape ?? assert.fail("setOracle")), {
      dex: "text",
      oraclePxs: { "[]": ["text", "decimal"] },
      markPxs: { "[]": { "[]": ["text", "decimal"] } },
      externalPerpPxs: { "[]": ["text", "decimal"] }
    })
    const userSigned = CanonicalAction.order(mainnet)
    assert.deepStrictEqual(written(userSigned(CanonicalAction.types.sendAsset)), {
      type: "sendAsset",
      signatureChainId: "text",
      hyperliquidChain: "Mainnet,Testnet",
      // text, because the exact text is signed
      destination: "text",
      sourceDex: "text",
      destinationDex: "text",
      token: "text",
      amount: "text",
      "fromSubAccount?": "text",
      nonce: "integer"
    })
    assert.deepStrictEqual(written(userSigned(CanonicalAction.types.convertToMultiSigUser)), {
      type: "convertToMultiSigUser",
      signatureChainId: "text",
      hyperliquidChain: "Mainnet,Testnet",
      signers: "json",
      nonce: "integer"
    })
  })

  for (const [name, type] of Object.entries(CanonicalAction.types)) {
    it(`has the fields of the typed data in their order: ${name}`, () => {
      assert.deepStrictEqual([...CanonicalAction.order(mainnet)(type).keys()], [
        "type",
        "signatureChainId",
        "hyperliquidChain",
        ...type.fields.map(({ name }) => name)
      ])
    })
  }

  it("lets SDKs omit the text that is signed as empty, or send null, which a wrapper hashes", () => {
    const order = CanonicalAction.order(mainnet)(CanonicalAction.types.approveAgent)
    const action = {
      nonce: 1,
      type: "approveAgent",
      signatureChainId: "0x1",
      hyperliquidChain: "Mainnet",
      agentAddress: `0x${"1".repeat(40)}`
    }
    for (const name of [{}, { agentName: null }, { agentName: "bot" }]) {
      assert.deepStrictEqual(ActionForm.normalizeAction(order, { ...action, ...name }, ["action"]).faults, [])
    }
    const arranged = CanonicalAction.arrangeMembers(order, { ...action, agentName: null })
    assert.deepStrictEqual(Object.entries(arranged).slice(-2), [["agentName", null], ["nonce", 1]])
  })

  it("is there for every action of the catalog that wraps no other", () => {
    const types = Object.keys(actionSchemas)
    const isKnown = (type: string) => CanonicalAction.l1(type) !== undefined || CanonicalAction.find(type) !== undefined
    assert.deepStrictEqual(types.filter((type) => !isKnown(type)), ["multiSig"])
    assert.isUndefined(CanonicalAction.l1("fromTheFuture"))
    assert.isUndefined(CanonicalAction.l1("usdSend"))
    assert.isUndefined(CanonicalAction.l1("toString"))
  })
})
