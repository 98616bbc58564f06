/**
 * Checks what runs beside a gateway with the programs that read it: the alert rules and their tests with promtool, the samples
 * for balancers with haproxy and nginx. Where one of them is not installed, the result says so.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../packages/manifest.ts"
import { run } from "../steps.ts"

const isInstalled = (program: string, flag: string): boolean => spawnSync(program, [flag]).status === 0

const deploy = (...names: ReadonlyArray<string>): string => path.join(root, "deploy", ...names)

/** Runs each check whose program is installed, and says which it ran. */
export const check = (scratch: string): string => {
  const ran: Array<string> = []
  const missing: Array<string> = []
  const wherever = (program: string, flag: string, checked: () => void) => {
    if (isInstalled(program, flag)) {
      checked()
      ran.push(program)
    } else missing.push(program)
  }
  wherever("promtool", "--version", () => {
    run("promtool", ["check", "rules", deploy("prometheus", "alerts.yaml")], scratch)
    run("promtool", ["test", "rules", deploy("prometheus", "alerts.test.yaml")], scratch)
    // the file of the key is elsewhere, and the check wants to read it
    const text = fs.readFileSync(deploy("compose", "prometheus.yaml"), "utf8")
    const copy = path.join(scratch, "prometheus.yaml")
    fs.writeFileSync(path.join(scratch, "prometheus-key"), "key")
    fs.writeFileSync(
      copy,
      text.replace("/run/secrets/", `${scratch}/`).replace("alerts.yaml", deploy("prometheus", "alerts.yaml"))
    )
    run("promtool", ["check", "config", copy], scratch)
  })
  wherever("haproxy", "-v", () => run("haproxy", ["-c", "-f", deploy("balancers", "haproxy.cfg")], scratch))
  wherever(
    "nginx",
    "-v",
    () => run("nginx", ["-t", "-q", "-p", scratch, "-c", deploy("balancers", "nginx.conf")], scratch)
  )
  const found = ran.length === 0 ? "nothing" : ran.join(", ")
  return missing.length === 0
    ? `${found} find no fault`
    : `${found} find no fault; not installed: ${missing.join(", ")}`
}
