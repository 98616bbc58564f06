/**
 * Checks what is in deploy/ and the Dockerfile, without Docker, a cluster or systemd: runs the steps of the Dockerfile in trees
 * of their own, starts what comes out without the right to write, and compares the manifests with their schemas, with the
 * image and with the settings of the gateway.
 *
 * `npm run deploy:check` takes the program that `npm run build` made; `npm run deploy:check -- --full` installs and builds it
 * by the steps of the Dockerfile.
 */
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { validate } from "dockerfile-utils"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { root, versionOf } from "../packages/manifest.ts"
import { equal, run, step } from "../steps.ts"
import * as Beside from "./beside.ts"
import * as Compose from "./compose.ts"
import * as Dockerfile from "./dockerfile.ts"
import * as Kubernetes from "./kubernetes.ts"
import * as Systemd from "./systemd.ts"

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "trigate-deploy-"))
// the user of the image has to reach it
fs.chmodSync(scratch, 0o755)
const tree = path.join(scratch, "tree")

const text = fs.readFileSync(path.join(root, "Dockerfile"), "utf8")

const lint = (): string => {
  const found = validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${JSON.stringify(message)}`)
  equal("mistakes in the Dockerfile", found, [])
  return "no mistakes"
}

const built = path.join(root, "packages/trigate/build")

const fromCheckout = new Map<string, Dockerfile.Instead>([
  ["npm ci", () => "the checkout has it"],
  ["npm run build", (folder) => {
    if (!fs.existsSync(built)) throw new Error("There is no program to put into the image: run npm run build")
    fs.cpSync(built, path.join(folder, "packages/trigate/build"), { recursive: true })
    return "the build of the checkout is taken"
  }]
])

const isFull = process.argv.includes("--full")

const build = (): Dockerfile.Stage => {
  const image = Dockerfile.build(text, {
    tree,
    context: root,
    instead: isFull ? new Map() : fromCheckout,
    say: (line) => console.log(`  ${line}`)
  })
  const node = versionOf(path.join(root, "node_modules/node"))
  equal("Node of the image", image.base, `node:${node}-bookworm-slim`)
  equal("signal to stop", image.stopSignal, "SIGTERM")
  equal("command", image.command, ["serve"])
  equal("user of the image is root", image.user.uid === 0, false)
  run("chmod", ["--recursive", "a-w", tree], scratch)
  return image
}

/** The exit code of the health check of an image whose gateway has a port. */
const health = (image: Dockerfile.Stage, port: string): number | null => {
  const [command = "", ...args] = image.health
  const { env, ...user } = Dockerfile.startOf(image)
  return spawnSync(command, args, { cwd: image.folder, env: { ...env, TRIGATE_PORT: port }, ...user }).status
}

/** Starts what is in the tree as the image would, as its user and without the right to write. */
const serve = (image: Dockerfile.Stage) =>
  Effect.gen(function*() {
    const [node, program = "", ...more] = image.entrypoint
    equal("entry point", [node, more], ["node", []])
    const gateway = yield* gatewayProcess(
      { ...image.environment, TRIGATE_CALLERS: "open", TRIGATE_PORT: "0", NODE_DEBUG_NATIVE: "COMPILE_CACHE" },
      {
        program: Dockerfile.below(tree, program),
        folder: image.folder,
        ...(Dockerfile.isRoot ? { user: image.user } : {})
      }
    )
    const { hostname, port } = new URL(gateway.url)
    equal("address", hostname, "0.0.0.0")
    equal("exit code of the health check", health(image, port), 0)
    const cached = gateway.printed().split("\n").filter((line) => /program\.js.* was accepted/u.test(line))
    if (cached.length === 0) {
      throw new Error(`The compiled code of the image was not used:\n${gateway.printed()}`)
    }
    gateway.signal("SIGTERM")
    equal("exit code of the gateway", yield* Effect.promise(() => gateway.ended), 0)
    equal("exit code of the health check afterwards", health(image, port), 1)
    return `starts from compiled code${
      Dockerfile.isRoot ? ` as user ${image.user.uid}` : ""
    } in a tree that it cannot write; healthy, then stopped`
  })

const checkAll = Effect.gen(function*() {
  step("dockerfile", lint)
  console.log(`image, ${isFull ? "from its sources" : "from the program that npm run build made"}:`)
  const image = build()
  const said = yield* serve(image)
  step("serve", () => said)
  const [port = 0] = image.ports
  equal("port of the image", String(port), image.environment["TRIGATE_PORT"])
  const manifests: ReadonlyArray<readonly [title: string, check: () => Promise<string>]> = [
    ["compose", () => Compose.check(image, port)],
    ["kubernetes", () => Kubernetes.check(image, port, scratch)],
    ["systemd", () => Systemd.check(image, scratch)],
    ["alert rules and balancers", () => Promise.resolve(Beside.check(scratch))]
  ]
  for (const [title, check] of manifests) {
    const found = yield* Effect.promise(check)
    step(title, () => found)
  }
})

const clean = Effect.sync(() => {
  run("chmod", ["--recursive", "u+w", scratch], root)
  fs.rmSync(scratch, { recursive: true, force: true })
})

await Effect.runPromise(Effect.ensuring(Effect.scoped(checkAll), clean))
