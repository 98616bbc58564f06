/** Leaves out the long tests that the seed of the run does not draw, if `TRIGATE_TEST_LONG=drawn`, as `npm test` sets it. */
import { seed } from "@trigate/testing/Sample"
import * as path from "node:path"
import type { RunnerTask, RunnerTestCase, RunnerTestFile } from "vitest"
import { TestRunner } from "vitest"
import { isDrawn, secondsOf } from "./longTests.ts"

const root = path.join(import.meta.dirname, "..")

interface Named {
  readonly test: RunnerTestCase
  readonly names: ReadonlyArray<string>
  readonly seconds: number
}

const testsOf = (module: string, tasks: ReadonlyArray<RunnerTask>, groups: ReadonlyArray<string>): Array<Named> =>
  tasks.flatMap((task) => {
    const names = [...groups, task.name]
    if (task.type !== "test") return testsOf(module, task.tasks, names)
    return task.mode === "run" || task.mode === "queued"
      ? [{ test: task, names, seconds: secondsOf(module, names) ?? 0 }]
      : []
  })

/** The tests of a file that run. Of a file with several tests, at least the shortest does. */
const draw = (file: RunnerTestFile): ReadonlySet<RunnerTask> => {
  const module = path.relative(root, file.filepath)
  const tests = testsOf(module, file.tasks, [])
  const drawn = tests.filter(({ names, seconds }) => seconds === 0 || isDrawn(seed, module, names, seconds))
  const kept = drawn.length > 0 || tests.length < 2
    ? drawn
    : tests.toSorted((one, other) => one.seconds - other.seconds).slice(0, 1)
  return new Set(kept.map(({ test }) => test))
}

/** Leaves out what does not run, and groups of which nothing runs, with their hooks. Returns whether anything runs. */
const leaveOut = (task: RunnerTask, drawn: ReadonlySet<RunnerTask>): boolean => {
  const isRun = task.type === "test"
    ? drawn.has(task)
    : task.tasks.map((child) => leaveOut(child, drawn)).some(Boolean)
  if (!isRun && task.mode !== "todo") task.mode = "skip"
  return isRun
}

export default class extends TestRunner {
  onCollected(files: Array<RunnerTestFile>): void {
    if (process.env["TRIGATE_TEST_LONG"] !== "drawn") return
    for (const file of files) leaveOut(file, draw(file))
  }
}
