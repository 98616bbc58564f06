/**
 * Checks what is in deploy/ and the Dockerfile, without Docker, a cluster or systemd: compares the manifests with their schemas,
 * with the image and with the settings of the gateway. The workflow's job `image` builds the image and runs it.
 */
import { validate } from "dockerfile-utils"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { root, versionOf } from "../packages/manifest.ts"
import { equal, step } from "../steps.ts"
import * as Beside from "./beside.ts"
import * as Compose from "./compose.ts"
import * as Dockerfile from "./dockerfile.ts"
import * as Kubernetes from "./kubernetes.ts"
import * as Systemd from "./systemd.ts"

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "trigate-deploy-"))
const text = fs.readFileSync(path.join(root, "Dockerfile"), "utf8")
const image = Dockerfile.read(text)
const [port = 0] = image.ports

const checkImage = (): string => {
  const found = validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${JSON.stringify(message)}`)
  equal("mistakes in the Dockerfile", found, [])
  equal("Node of the image", image.base, `node:${versionOf(path.join(root, "node_modules/node"))}-bookworm-slim`)
  equal("signal to stop", image.stopSignal, "SIGTERM")
  equal("command", image.command, ["serve"])
  equal("user of the image is root", image.user.uid === 0, false)
  equal("port of the image", String(port), image.environment["TRIGATE_PORT"])
  equal("address", image.environment["TRIGATE_HOST"], "0.0.0.0")
  return "no mistakes"
}

const manifests: ReadonlyArray<readonly [title: string, check: () => Promise<string>]> = [
  ["dockerfile", () => Promise.resolve(checkImage())],
  ["compose", () => Compose.check(image, port)],
  ["kubernetes", () => Kubernetes.check(image, port, scratch)],
  ["systemd", () => Systemd.check(image, scratch)],
  ["alert rules and balancers", () => Promise.resolve(Beside.check(scratch))]
]

try {
  for (const [title, check] of manifests) {
    const found = await check()
    step(title, () => found)
  }
} finally {
  fs.rmSync(scratch, { recursive: true, force: true })
}
