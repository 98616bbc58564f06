/**
 * Runs EVM code with `@ethereumjs/vm`.
 *
 * Import this module dynamically: it loads about 300 other modules, which are needed only for calls that run code.
 */
import { createBlock } from "@ethereumjs/block"
import { type Common, createCustomCommon, Hardfork, Mainnet, type StateManagerInterface } from "@ethereumjs/common"
import {
  createEVM,
  EVMError,
  type EVMMockBlockchainInterface,
  type EVMResult,
  type ExecResult,
  getActivePrecompiles,
  getOpcodesForHF,
  paramsEVM,
  type PrecompileInput
} from "@ethereumjs/evm"
import { createLegacyTx, createTxFromRLP } from "@ethereumjs/tx"
import { Account, type Address as EvmAddress, bytesToHex, createAddressFromString, hexToBytes } from "@ethereumjs/util"
import { createVM, runTx, type RunTxOpts, type RunTxResult } from "@ethereumjs/vm"
import type { Address, Data, Hash } from "@trigate/domain/encoding/Encoding"
import { keccak256, pad } from "viem/utils"
import * as EvmChain from "./EvmChain.ts"

const toAddress = (address: EvmAddress): Address => bytesToHex(address.bytes)

const toSlot = (key: Uint8Array): bigint => BigInt(bytesToHex(key))

interface State extends StateManagerInterface {
  /** Sets the initial state. */
  readonly start: (world: EvmChain.World) => void
  /** Returns the current state. */
  readonly world: () => EvmChain.World
}

/**
 * Makes the state object that `@ethereumjs/vm` requires. It reads and changes a {@link World}. A checkpoint is a
 * reference to an earlier `World`.
 */
const makeState = (empty: EvmChain.World): State => {
  let world = empty
  let original = empty
  const checkpoints: Array<EvmChain.World> = []
  const codes = new Map<Data, { readonly bytes: Uint8Array; readonly hash: Uint8Array }>()
  // a call can override the code of a contract, so strangers choose the keys
  const maxCodes = 256
  const contractCode = (code: Data) => {
    const known = codes.get(code)
    if (known !== undefined) return known
    const read = { bytes: hexToBytes(code), hash: keccak256(code, "bytes") }
    if (codes.size >= maxCodes) codes.clear()
    codes.set(code, read)
    return read
  }
  const done = (next: EvmChain.World): Promise<void> => {
    world = next
    return Promise.resolve()
  }
  const storageBytes = (from: EvmChain.World, address: EvmAddress, key: Uint8Array) =>
    Promise.resolve(hexToBytes(EvmChain.readWord(from, toAddress(address), toSlot(key))))
  const getAccount = (address: EvmAddress): Account | undefined => {
    const { balance, code, nonce } = EvmChain.readAccount(world, toAddress(address))
    if (nonce === 0n && balance === 0n && code === "0x") return undefined
    return new Account(nonce, balance, undefined, contractCode(code).hash)
  }
  const put = (address: EvmAddress, account: { readonly nonce?: bigint; readonly balance?: bigint } | undefined) =>
    done(
      account === undefined
        ? EvmChain.withoutAccount(world, toAddress(address))
        : EvmChain.withAccount(world, toAddress(address), {
          ...(account.nonce === undefined ? {} : { nonce: account.nonce }),
          ...(account.balance === undefined ? {} : { balance: account.balance })
        })
    )
  const bytesAt = (address: EvmAddress): Uint8Array =>
    contractCode(EvmChain.readAccount(world, toAddress(address)).code).bytes
  const noRoot = () => Promise.reject(new RangeError("The sandbox has no state roots"))
  return {
    start: (next) => {
      world = next
      original = next
      checkpoints.length = 0
    },
    world: () => world,
    getAccount: (address) => Promise.resolve(getAccount(address)),
    putAccount: put,
    modifyAccountFields: put,
    deleteAccount: (address) => put(address, undefined),
    putCode: (address, code) => done(EvmChain.withAccount(world, toAddress(address), { code: bytesToHex(code) })),
    getCode: (address) => Promise.resolve(bytesAt(address)),
    getCodeSize: (address) => Promise.resolve(bytesAt(address).length),
    getStorage: (address, key) => storageBytes(world, address, key),
    putStorage: (address, key, value) =>
      done(EvmChain.withWord(world, toAddress(address), toSlot(key), pad(bytesToHex(value)))),
    clearStorage: (address) => done(EvmChain.withoutWords(world, toAddress(address))),
    checkpoint: () => {
      checkpoints.push(world)
      return Promise.resolve()
    },
    commit: () => {
      checkpoints.pop()
      return Promise.resolve()
    },
    revert: () => done(checkpoints.pop() ?? world),
    originalStorageCache: {
      get: (address, key) => storageBytes(original, address, key),
      clear: () => {
        original = world
      }
    },
    getStateRoot: noRoot,
    setStateRoot: noRoot,
    hasStateRoot: () => Promise.resolve(false),
    clearCaches: () => {},
    shallowCopy: () => makeState(world)
  }
}

const makeBlock = ({ baseFee, gasLimit, number, timestamp }: EvmChain.EvmBlock, common: Common) =>
  createBlock({ header: { number, timestamp, gasLimit, baseFeePerGas: baseFee } }, { common, freeze: false })

const toAccessList = (result: Pick<RunTxResult, "accessList">): EvmChain.AccessList =>
  (result.accessList ?? []).map(({ address, storageKeys }) => ({ address, storageKeys }))

const toOutcome = (
  { createdAddress, execResult }: EVMResult,
  world: EvmChain.World,
  gasUsed: bigint
): Omit<EvmChain.EvmOutcome, "unplayed"> => ({
  world,
  gasUsed,
  failure: execResult.exceptionError?.error,
  returned: bytesToHex(execResult.returnValue),
  created: createdAddress === undefined ? null : toAddress(createdAddress),
  logs: (execResult.logs ?? []).map(([address, topics, data]) => ({
    address: bytesToHex(address),
    topics: topics.map((topic) => bytesToHex(topic)),
    data: bytesToHex(data)
  })),
  accessList: []
})

/**
 * The opcodes before which an execution can pause: each loop contains a `JUMPDEST`, each recursion a call, and the
 * others take long.
 */
const pausing = {
  EXP: 0x0a,
  KECCAK256: 0x20,
  SSTORE: 0x55,
  JUMPDEST: 0x5b,
  CREATE: 0xf0,
  CALL: 0xf1,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  STATICCALL: 0xfa
} as const

const pausingOpcodes = (common: Common, pause: EvmChain.Pause) => {
  const { dynamicGasHandlers, handlers, opcodes } = getOpcodesForHF(common)
  return Object.entries(pausing).flatMap(([opcodeName, opcode]) => {
    const handler = handlers.get(opcode)
    const known = opcodes.get(opcode)
    if (handler === undefined || known === undefined) return []
    const gasFunction = dynamicGasHandlers.get(opcode)
    const logicFunction: typeof handler = (runState, rules) => {
      const paused = pause()
      return paused === undefined ? handler(runState, rules) : paused.then(() => handler(runState, rules))
    }
    return [{
      opcode,
      opcodeName,
      baseFee: known.fee,
      logicFunction,
      ...(gasFunction === undefined ? {} : { gasFunction })
    }]
  })
}

/** The gas of a call of a chain's own precompile, and of each byte of its input and output, as the venue documents it. */
const precompileGas = 2_000n
const bytePrice = 65n

/** The precompiled contracts that can take seconds, and the gas that one run of each may use. */
const slowPrecompiles: ReadonlyArray<readonly [address: Address, gas: (input: Uint8Array) => bigint]> = [
  // modular exponentiation: exponents of at most 1 024 bytes, as in EIP-7823
  ["0x0000000000000000000000000000000000000005", (input) => {
    const length = bytesToHex(input.subarray(32, 64))
    return length === "0x" || BigInt(length) <= 1_024n ? EvmChain.gasLimit : 0n
  }],
  // pairings of elliptic curves
  ["0x0000000000000000000000000000000000000008", () => 500_000n],
  // rounds of BLAKE2
  ["0x0000000000000000000000000000000000000009", () => 500_000n]
]

const boundedPrecompiles = (common: Common) => {
  const active = getActivePrecompiles(common)
  return slowPrecompiles.flatMap(([address, most]) => {
    const run = active.get(address.slice(2))
    return run === undefined ? [] : [{
      address: createAddressFromString(address),
      function: (input: Parameters<typeof run>[0]) => {
        const gas = most(input.data)
        return run(gas < input.gasLimit ? { ...input, gasLimit: gas } : input)
      }
    }]
  })
}

/**
 * Makes an EVM for a chain ID, with the rules of the Cancun hard fork and a chain's own precompiles. It runs only one
 * execution at a time.
 */
export const make = (chainId: number, precompiles: ReadonlyArray<Address>): Promise<EvmChain.Machine> => {
  const common = createCustomCommon({ chainId }, Mainnet, { hardfork: Hardfork.Cancun })
  const state = makeState(EvmChain.make([]))
  let blockHash = (_: number): Hash => EvmChain.zeroWord
  const blockchain: EVMMockBlockchainInterface = {
    getBlock: (number) => Promise.resolve({ hash: () => hexToBytes(blockHash(number)) }),
    putBlock: () => Promise.resolve(),
    shallowCopy: () => blockchain
  }
  let refuseMessage: EvmChain.EvmBlock["refuseMessage"] = () => undefined
  let precompile: EvmChain.EvmBlock["precompile"]
  let unplayed: string | undefined
  common.updateParams(paramsEVM)
  let pause: EvmChain.Pause = () => undefined
  return createEVM({
    common,
    stateManager: state,
    blockchain,
    customOpcodes: pausingOpcodes(common, () => pause()),
    customPrecompiles: [
      ...boundedPrecompiles(common),
      ...precompiles.map((address) => ({
        address: createAddressFromString(address),
        function: ({ data, gasLimit }: PrecompileInput): ExecResult => {
          const result = precompile?.(address, bytesToHex(data)) ?? "failed"
          const returnValue = hexToBytes(result === "failed" ? "0x" : result)
          const executionGasUsed = precompileGas + bytePrice * BigInt(data.length + returnValue.length)
          return result === "failed" || executionGasUsed > gasLimit
            ? {
              executionGasUsed: gasLimit,
              returnValue: new Uint8Array(0),
              exceptionError: new EVMError(EVMError.errorMessages.OUT_OF_GAS)
            }
            : { executionGasUsed, returnValue }
        }
      }))
    ]
  }).then((evm) => createVM({ common, stateManager: state, blockchain, evm })).then((vm): EvmChain.Machine => {
    vm.evm.events?.on("beforeMessage", ({ to }) => {
      if (to !== undefined) unplayed ??= refuseMessage(toAddress(to))
    })
    const start = (world: EvmChain.World, block: EvmChain.EvmBlock, by: EvmChain.Pause) => {
      ;({ precompile, refuseMessage } = block)
      pause = by
      unplayed = undefined
      state.start(world)
      blockHash = block.hashAt
      return makeBlock(block, common)
    }
    const run = (
      world: EvmChain.World,
      block: EvmChain.EvmBlock,
      by: EvmChain.Pause,
      options: RunTxOpts
    ): Promise<EvmChain.EvmOutcome> =>
      runTx(vm, { ...options, block: start(world, block, by) }).then((result) => ({
        ...toOutcome(result, state.world(), result.totalGasSpent),
        accessList: toAccessList(result),
        unplayed
      }))
    return {
      execute: (world, block, by, bytes) =>
        run(world, block, by, { tx: createTxFromRLP(hexToBytes(bytes), { common }) }),
      estimate: (world, block, by, { data, from, gas, gasPrice, to, value }) => {
        const tx = createLegacyTx(
          { gasLimit: gas, gasPrice, ...(to === null ? {} : { to }), value, data },
          { common, freeze: false }
        )
        tx.getSenderAddress = () => createAddressFromString(from)
        return run(world, { ...block, baseFee: 0n }, by, { tx, skipNonce: true, reportAccessList: true })
      },
      call: (world, block, by, { data, from, gas, gasPrice, to, value }) =>
        vm.evm.runCall({
          block: start(world, block, by),
          caller: createAddressFromString(from),
          ...(to === null ? {} : { to: createAddressFromString(to) }),
          data: hexToBytes(data),
          gasLimit: gas,
          gasPrice,
          value
        }).then((result) => {
          vm.evm.journal.cleanJournal()
          return { ...toOutcome(result, state.world(), result.execResult.executionGasUsed), unplayed }
        })
    }
  })
}
