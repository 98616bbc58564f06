/** A folder for what the test files of one run share, such as a bundle of the program: made before the first, removed after the last. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export const setup = (): () => void => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "trigate-run-"))
  // Postgres runs as another user where the tests run as root
  fs.chmodSync(folder, 0o755)
  process.env["TEST_RUN_FOLDER"] = folder
  return () => fs.rmSync(folder, { recursive: true, force: true })
}
