/**
 * The worker thread of the token chain's virtual machine, which is synchronous WebAssembly.
 *
 * An error that the machine throws ends the thread, because it can leave the machine's memory in a wrong state.
 */
import { Address, Cell, parseTuple } from "@ton/core"
import { Executor } from "@ton/sandbox"
import type {
  ExecutorEmulationResult,
  ExecutorGetMethodArgs,
  ExecutorGetMethodResult,
  ExecutorRunTransactionArgs
} from "@ton/sandbox"
import { parentPort } from "node:worker_threads"

/** A call of a get method. Cells are bags of cells in base64. */
export interface GetMethod {
  readonly args: Omit<ExecutorGetMethodArgs, "code" | "data" | "stack" | "libs" | "address" | "randomSeed">
  readonly code: string
  readonly data: string
  readonly stack: string
  readonly address: string
}

/** A message to an account. */
export interface Sent {
  readonly args: Omit<ExecutorRunTransactionArgs, "message" | "libs" | "randomSeed">
  readonly message: string
}

/** A message to the thread. */
export type Execution = GetMethod | Sent

/** A message of the thread: its first one, or a result. */
export type Reply = "loaded" | ExecutorGetMethodResult | ExecutorEmulationResult

/** Every execution has the same seed. */
const randomSeed = Buffer.alloc(32)

/** Logs and the list of actions, which a contract chooses, are not sent: only errors contain logs. */
const runGetMethod = (executor: Executor, { address, args, code, data, stack }: GetMethod) =>
  executor.runGetMethod({
    ...args,
    code: Cell.fromBase64(code),
    data: Cell.fromBase64(data),
    stack: parseTuple(Cell.fromBase64(stack)),
    address: Address.parse(address),
    randomSeed
  }).then(({ output }): ExecutorGetMethodResult => ({
    output: output.success ? { ...output, vm_log: "" } : output,
    logs: "",
    debugLogs: ""
  }))

const runTransaction = (executor: Executor, { args, message }: Sent) =>
  executor.runTransaction({ ...args, libs: null, message: Cell.fromBase64(message), randomSeed }).then(
    (ran): ExecutorEmulationResult =>
      ran.result.success
        ? { result: { ...ran.result, vmLog: "", actions: null }, logs: "", debugLogs: "" }
        : ran
  )

const run = (executor: Executor, execution: Execution): Promise<Reply> =>
  "message" in execution ? runTransaction(executor, execution) : runGetMethod(executor, execution)

if (parentPort !== null) {
  const port = parentPort
  const reply = (result: Reply) => port.postMessage(result)
  const executor = await Executor.create()
  port.on("message", (execution: Execution) => void run(executor, execution).then(reply))
  reply("loaded")
}
