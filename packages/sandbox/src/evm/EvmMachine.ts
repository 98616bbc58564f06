/**
 * Runs EVM code with `@ethereumjs/vm`.
 *
 * Import this module dynamically: it loads about 300 other modules, which are needed only for calls that run code.
 */
import { createBlock } from "@ethereumjs/block"
import { type Common, createCustomCommon, Hardfork, Mainnet, type StateManagerInterface } from "@ethereumjs/common"
import type { EVMMockBlockchainInterface, EVMResult } from "@ethereumjs/evm"
import { createLegacyTx, createTxFromRLP } from "@ethereumjs/tx"
import { Account, type Address as EvmAddress, bytesToHex, createAddressFromString, hexToBytes } from "@ethereumjs/util"
import { createVM, runTx, type RunTxOpts, type RunTxResult } from "@ethereumjs/vm"
import type { Address, Data, Hash } from "@trigate/domain/encoding/Encoding"
import { keccak256, pad } from "viem/utils"
import * as EvmWorld from "./EvmChain.ts"
import type { AccessList, EvmBlock, EvmOutcome, Machine, RefuseMessage, World } from "./EvmChain.ts"

const toAddress = (address: EvmAddress): Address => bytesToHex(address.bytes)

const toSlot = (key: Uint8Array): bigint => BigInt(bytesToHex(key))

interface State extends StateManagerInterface {
  /** Sets the initial state. */
  readonly start: (world: World) => void
  /** Returns the current state. */
  readonly world: () => World
}

/**
 * Makes the state object that `@ethereumjs/vm` requires. It reads and changes a {@link World}. A checkpoint is a
 * reference to an earlier `World`.
 */
const makeState = (empty: World): State => {
  let world = empty
  let original = empty
  const checkpoints: Array<World> = []
  const codes = new Map<Data, { readonly bytes: Uint8Array; readonly hash: Uint8Array }>()
  const contractCode = (code: Data) => {
    const known = codes.get(code)
    if (known !== undefined) return known
    const read = { bytes: hexToBytes(code), hash: keccak256(code, "bytes") }
    codes.set(code, read)
    return read
  }
  const done = (next: World): Promise<void> => {
    world = next
    return Promise.resolve()
  }
  const storageBytes = (from: World, address: EvmAddress, key: Uint8Array) =>
    Promise.resolve(hexToBytes(EvmWorld.readWord(from, toAddress(address), toSlot(key))))
  const getAccount = (address: EvmAddress): Account | undefined => {
    const { balance, code, nonce } = EvmWorld.readAccount(world, toAddress(address))
    if (nonce === 0n && balance === 0n && code === "0x") return undefined
    return new Account(nonce, balance, undefined, contractCode(code).hash)
  }
  const put = (address: EvmAddress, account: { readonly nonce?: bigint; readonly balance?: bigint } | undefined) =>
    done(
      account === undefined
        ? EvmWorld.withoutAccount(world, toAddress(address))
        : EvmWorld.withAccount(world, toAddress(address), {
          ...(account.nonce === undefined ? {} : { nonce: account.nonce }),
          ...(account.balance === undefined ? {} : { balance: account.balance })
        })
    )
  const bytesAt = (address: EvmAddress): Uint8Array =>
    contractCode(EvmWorld.readAccount(world, toAddress(address)).code).bytes
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
    putCode: (address, code) => done(EvmWorld.withAccount(world, toAddress(address), { code: bytesToHex(code) })),
    getCode: (address) => Promise.resolve(bytesAt(address)),
    getCodeSize: (address) => Promise.resolve(bytesAt(address).length),
    getStorage: (address, key) => storageBytes(world, address, key),
    putStorage: (address, key, value) =>
      done(EvmWorld.withWord(world, toAddress(address), toSlot(key), pad(bytesToHex(value)))),
    clearStorage: (address) => done(EvmWorld.withoutWords(world, toAddress(address))),
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

const makeBlock = ({ baseFee, gasLimit, number, timestamp }: EvmBlock, common: Common) =>
  createBlock({ header: { number, timestamp, gasLimit, baseFeePerGas: baseFee } }, { common, freeze: false })

const toAccessList = (result: Pick<RunTxResult, "accessList">): AccessList =>
  (result.accessList ?? []).map(({ address, storageKeys }) => ({ address, storageKeys }))

const toOutcome = (
  { createdAddress, execResult }: EVMResult,
  world: World,
  gasUsed: bigint
): Omit<EvmOutcome, "unplayed"> => ({
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

/** Makes an EVM for a chain ID, with the rules of the Cancun hard fork. It runs only one execution at a time. */
export const make = (chainId: number): Promise<Machine> => {
  const common = createCustomCommon({ chainId }, Mainnet, { hardfork: Hardfork.Cancun })
  const state = makeState(EvmWorld.make([]))
  let blockHash = (_: number): Hash => EvmWorld.zeroWord
  const blockchain: EVMMockBlockchainInterface = {
    getBlock: (number) => Promise.resolve({ hash: () => hexToBytes(blockHash(number)) }),
    putBlock: () => Promise.resolve(),
    shallowCopy: () => blockchain
  }
  let refuseMessage: RefuseMessage = () => undefined
  let unplayed: string | undefined
  return createVM({ common, stateManager: state, blockchain }).then((vm): Machine => {
    vm.evm.events?.on("beforeMessage", ({ to, value }) => {
      if (to !== undefined) unplayed ??= refuseMessage(toAddress(to), value)
    })
    const start = (world: World, block: EvmBlock) => {
      ;({ refuseMessage } = block)
      unplayed = undefined
      state.start(world)
      blockHash = block.hashAt
      return makeBlock(block, common)
    }
    const run = (world: World, block: EvmBlock, options: RunTxOpts): Promise<EvmOutcome> =>
      runTx(vm, { ...options, block: start(world, block) }).then((result) => ({
        ...toOutcome(result, state.world(), result.totalGasSpent),
        accessList: toAccessList(result),
        unplayed
      }))
    return {
      execute: (world, block, bytes) => run(world, block, { tx: createTxFromRLP(hexToBytes(bytes), { common }) }),
      estimate: (world, block, { data, from, gas, gasPrice, to, value }) => {
        const tx = createLegacyTx(
          { gasLimit: gas, gasPrice, ...(to === null ? {} : { to }), value, data },
          { common, freeze: false }
        )
        tx.getSenderAddress = () => createAddressFromString(from)
        return run(world, { ...block, baseFee: 0n }, { tx, skipNonce: true, reportAccessList: true })
      },
      call: (world, block, { data, from, gas, gasPrice, to, value }) =>
        vm.evm.runCall({
          block: start(world, block),
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
