/** Values made once for all test files of a run, which several processes execute in parallel. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

/**
 * Returns the directory of this test run, which is removed with it; outside of a run of all tests, a directory of this process.
 */
const folderOfRun = (): string => {
  const given = process.env["TEST_RUN_FOLDER"]
  if (given !== undefined) return given
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "trigate-run-"))
  Fs.chmodSync(folder, 0o755)
  process.env["TEST_RUN_FOLDER"] = folder
  process.once("exit", () => Fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * Returns a directory that `make` fills at the first call in a test run. Other processes wait until it is complete, and fail if
 * `make` failed.
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
