import { assert, describe, it } from "@effect/vitest"
import { decodeParams, evmMethods, evmOperations, serving } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods, layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { Operation } from "@trigate/domain/operations/Operation"
import { configuredReads, filterMethods, transactionAdvice } from "@trigate/domain/unstable/evm/EvmMethods"
import * as Effect from "effect/Effect"

const named = (methods: typeof evmMethods, name: string) =>
  methods.find((each) => each.name === name) ?? assert.fail(name)

describe("the methods of an EVM route", () => {
  it.each([["/evm", evmMethods], ["/l2", layer2Methods]] as const)("of %s have each name once", (_route, methods) => {
    const names = methods.map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)])
  })

  it("keep the declarations with a schema", () => {
    for (const each of Object.values(evmOperations)) assert.strictEqual(named(evmMethods, each.name), each)
    for (const each of Object.values(layer2Operations)) assert.strictEqual(named(layer2Methods, each.name), each)
  })

  it.each([["/evm", evmMethods], ["/l2", layer2Methods]] as const)(
    "of %s change nothing but two",
    (_route, methods) => {
      assert.deepStrictEqual(methods.filter((each) => each.class === "once").map(({ name }) => name), [
        "eth_sendRawTransaction",
        "eth_sendRawTransactionSync"
      ])
      for (const each of methods) if (each.class === "once") assert.strictEqual(each.advice, transactionAdvice)
      const changing = methods.filter(({ class: kind, name }) =>
        kind === "read" && /send|submit|sign|subscri|filter/iu.test(name) && !Object.hasOwn(filterMethods, name)
      )
      assert.deepStrictEqual(changing, [])
    }
  )

  it("read state at the latest block only where nodes know no other", () => {
    const positions = evmMethods.flatMap(({ blockParam, name }) =>
      blockParam === undefined ? [] : [[name, blockParam.position, ...blockParam.supported].join(" ")]
    )
    assert.deepStrictEqual(positions.toSorted(), [
      "eth_call 1 latest",
      "eth_createAccessList 1 latest",
      "eth_estimateGas 1 latest pending",
      "eth_feeHistory 1 latest",
      "eth_getBalance 1 latest",
      "eth_getCode 1 latest pending",
      "eth_getProof 2 latest",
      "eth_getStorageAt 2 latest",
      "eth_getTransactionCount 1 latest pending",
      "eth_simulateV1 1 latest"
    ])
    assert.deepStrictEqual(layer2Methods.filter(({ blockParam }) => blockParam !== undefined), [])
  })
})

describe("the params of a method", () => {
  const faultOf = (operation: Operation, params: unknown) =>
    Effect.runSync(Effect.match(decodeParams(operation, params), {
      onFailure: (error) => error.errors[0]?.path,
      onSuccess: () => undefined
    }))

  it.each([[[]], [[{ to: "0x" }, "latest", {}, null]], [[1n, "x"]]])("that is relayed may be %s", (params) => {
    assert.isUndefined(faultOf(named(evmMethods, "eth_call"), params))
  })

  it.each([[{}], [null], ["x"], [[1, 2, 3, 4, 5]]])("that is relayed may not be %j", (params) => {
    assert.deepStrictEqual(faultOf(named(evmMethods, "eth_call"), params), ["params"])
  })

  it.each([
    [["0x02f8"], undefined],
    [["0x02f"], ["params", 0]],
    [["02f8"], ["params", 0]],
    [[], ["params", 0]],
    [["0x02f8", "0x02f8"], ["params", 1]]
  ])("that sends a transaction are one of bytes: %j", (params, path) => {
    assert.deepStrictEqual(faultOf(named(evmMethods, "eth_sendRawTransaction"), params), path)
  })

  it.each([
    [["0x02f8"], undefined],
    [["0x02f8", "0x7d0"], undefined],
    [["0x02f8", 2000], undefined],
    [["0x02f8", "soon"], ["params", 1]],
    [[], ["params", 0]]
  ])("that sends a transaction and waits are bytes and a time: %j", (params, path) => {
    assert.deepStrictEqual(faultOf(named(evmMethods, "eth_sendRawTransactionSync"), params), path)
  })

  it.each([[{}], [[1, 2, 3, 4, 5]], [[]]])("of the configuration may be %j", (params) => {
    assert.deepStrictEqual(configuredReads("debug_traceCall", serving).map((read) => faultOf(read, params)), [
      undefined
    ])
  })
})
