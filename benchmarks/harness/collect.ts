/** Preloaded into a server that is measured: collects its garbage at SIGUSR2, and then writes the file `COLLECTED`. */
import * as fs from "node:fs"
import * as v8 from "node:v8"
import * as vm from "node:vm"

v8.setFlagsFromString("--expose-gc")
process.on("SIGUSR2", () => {
  // only contexts that are made after the flag was set have the function
  vm.runInNewContext("gc(); gc()")
  fs.writeFileSync(process.env["COLLECTED"] ?? "", "")
})
