/**
 * Makes directories and starts processes once per test run. The test files of a run share them, although several
 * processes execute these files in parallel.
 */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

/** Creates the directory of a test run. */
export const makeRunFolder = (): string => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "trigate-run-"))
  // if the tests run as root, Postgres runs as another user, who must be able to open the directory
  Fs.chmodSync(folder, 0o755)
  process.env["TEST_RUN_FOLDER"] = folder
  return folder
}

const processList = "processes"

/** Ends the registered processes of a test run and removes the run's directory. */
export const removeRunFolder = (folder: string): void => {
  const list = Path.join(folder, processList)
  for (const pid of Fs.existsSync(list) ? Fs.readFileSync(list, "utf8").split("\n").filter(Boolean) : []) {
    try {
      process.kill(Number(pid), "SIGQUIT")
    } catch {
      // the process has already ended
    }
  }
  Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
}

/**
 * Returns the directory of this test run, which is removed when the run ends. If no test run has made a directory,
 * makes a directory for this process only.
 */
const folderOfRun = (): string => {
  const given = process.env["TEST_RUN_FOLDER"]
  if (given !== undefined) return given
  const folder = makeRunFolder()
  process.once("exit", () => removeRunFolder(folder))
  return folder
}

/** Registers a process that is ended with SIGQUIT when the test run ends. */
export const endWithRun = (pid: number): void => Fs.appendFileSync(Path.join(folderOfRun(), processList), `${pid}\n`)

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * Returns a directory that `make` fills at the first call in a test run. Other processes wait until the directory is
 * complete, and fail if `make` failed.
 */
export const oncePerRun = (name: string, make: (folder: string) => void): string => {
  const folder = Path.join(folderOfRun(), name)
  const [made, failed] = [`${folder}.made`, `${folder}.failed`]
  try {
    Fs.mkdirSync(folder)
  } catch {
    while (!Fs.existsSync(made)) {
      if (Fs.existsSync(failed)) throw new Error(`${name} failed: ${Fs.readFileSync(failed, "utf8")}`)
      Atomics.wait(sleeper, 0, 0, 20)
    }
    return folder
  }
  try {
    make(folder)
  } catch (error) {
    Fs.writeFileSync(failed, String(error))
    throw error
  }
  Fs.writeFileSync(made, "")
  return folder
}
