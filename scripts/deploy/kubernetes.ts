/**
 * Checks the manifests for Kubernetes: the schemas and types of its API, the restricted pod security standard, names that lead
 * somewhere, the time that a pod has to end, and the gateway's settings.
 */
import { maxDrainWait } from "@trigate/server/requests/Listener"
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { parse, parseAllDocuments } from "yaml"
import { root } from "../packages/manifest.ts"
import { equal, run } from "../steps.ts"
import type { Image } from "./dockerfile.ts"
import { example, expectedAdminPort, settings, shared } from "./started.ts"

const folder = path.join(root, "deploy/kubernetes")
const models = path.join(root, "node_modules/kubernetes-models")

const Resource = Schema.StructWithRest(
  Schema.Struct({ apiVersion: Schema.String, kind: Schema.String }),
  [Schema.Record(Schema.String, Schema.Json)]
)

type Resource = typeof Resource.Type

const decodeResource = Schema.decodeUnknownSync(Resource)

/** The module of a kind: `apps/v1/Deployment`, `networking.k8s.io/v1/NetworkPolicy`. */
const moduleOf = ({ apiVersion, kind }: Resource): string => path.join(models, apiVersion, `${kind}.js`)

// a class of the models throws for what its schema refuses
interface Model {
  new(data: Resource): { validate(): void }
}

const conforms = async (resource: Resource): Promise<void> => {
  const found: unknown = await import(moduleOf(resource))
  const isModel = (value: unknown): value is Model => typeof value === "function"
  const Model: unknown = Predicate.hasProperty(found, resource.kind) ? found[resource.kind] : undefined
  if (!isModel(Model)) throw new Error(`${resource.kind} is not known`)
  new Model(resource).validate()
}

/** The schemas allow further members, as the API does; for the compiler they are excess properties of a literal. */
const hasKnownMembers = (resources: ReadonlyArray<Resource>, scratch: string): void => {
  const lines = resources.flatMap((resource, index) => [
    `import type { I${resource.kind} as T${index} } from ${JSON.stringify(moduleOf(resource))}`,
    `export const r${index}: T${index} = ${JSON.stringify(resource, undefined, 2)}`
  ])
  fs.writeFileSync(path.join(scratch, "resources.ts"), lines.join("\n"))
  const options = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--target",
    "es2022",
    "--types",
    ""
  ]
  run(path.join(root, "node_modules/.bin/tsc"), [...options, "resources.ts"], scratch)
}

const no = Schema.Literal(false)
const yes = Schema.Literal(true)
const labels = Schema.Record(Schema.String, Schema.String)

const probe = (route: string) =>
  Schema.Struct({ httpGet: Schema.Struct({ path: Schema.Literal(route), port: Schema.Literal("http") }) })

/** What of the deployment is more than its schema asks: the restricted standard, and what this gateway needs. */
const Deployment = Schema.Struct({
  kind: Schema.Literal("Deployment"),
  spec: Schema.Struct({
    replicas: Schema.Literal(2),
    selector: Schema.Struct({ matchLabels: labels }),
    strategy: Schema.Struct({
      rollingUpdate: Schema.Struct({ maxSurge: Schema.Literal(1), maxUnavailable: Schema.Literal(0) })
    }),
    template: Schema.Struct({
      metadata: Schema.Struct({ labels, annotations: labels }),
      spec: Schema.Struct({
        automountServiceAccountToken: no,
        enableServiceLinks: no,
        terminationGracePeriodSeconds: Schema.Int,
        securityContext: Schema.Struct({
          runAsNonRoot: yes,
          runAsUser: Schema.Int,
          runAsGroup: Schema.Int,
          fsGroup: Schema.Int,
          seccompProfile: Schema.Struct({ type: Schema.Literal("RuntimeDefault") })
        }),
        containers: Schema.Tuple([Schema.Struct({
          image: Schema.String,
          args: Schema.Array(Schema.String),
          env: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.String }))),
          ports: Schema.Tuple([
            Schema.Struct({ name: Schema.Literal("http"), containerPort: Schema.Int }),
            Schema.Struct({ name: Schema.Literal("admin"), containerPort: Schema.Int })
          ]),
          startupProbe: probe("/health/ready"),
          readinessProbe: probe("/health/ready"),
          livenessProbe: probe("/health/live"),
          lifecycle: Schema.Struct({ preStop: Schema.Struct({ sleep: Schema.Struct({ seconds: Schema.Int }) }) }),
          resources: Schema.Struct({ requests: labels, limits: labels }),
          securityContext: Schema.Struct({
            allowPrivilegeEscalation: no,
            readOnlyRootFilesystem: yes,
            capabilities: Schema.Struct({ drop: Schema.Tuple([Schema.Literal("ALL")]) })
          }),
          volumeMounts: Schema.Array(Schema.Struct({ name: Schema.String, mountPath: Schema.String, readOnly: yes }))
        })]),
        volumes: Schema.Array(Schema.Struct({
          name: Schema.String,
          configMap: Schema.optionalKey(Schema.Struct({ name: Schema.String })),
          secret: Schema.optionalKey(Schema.Struct({ secretName: Schema.String }))
        }))
      })
    })
  })
})

/** The other resources choose pods by the labels of the deployment. */
const Chooses = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("Service"), spec: Schema.Struct({ selector: labels }) }),
  Schema.Struct({
    kind: Schema.Literal("PodDisruptionBudget"),
    spec: Schema.Struct({ selector: Schema.Struct({ matchLabels: labels }), minAvailable: Schema.Literal(1) })
  }),
  Schema.Struct({
    kind: Schema.Literal("NetworkPolicy"),
    spec: Schema.Struct({ podSelector: Schema.Struct({ matchLabels: labels }) })
  })
])

const choosing = new Set(["Service", "PodDisruptionBudget", "NetworkPolicy"])

const decodeChooses = Schema.decodeUnknownSync(Chooses)

const chosen = (chooses: typeof Chooses.Type): unknown =>
  chooses.kind === "Service"
    ? chooses.spec.selector
    : chooses.kind === "NetworkPolicy"
    ? chooses.spec.podSelector.matchLabels
    : chooses.spec.selector.matchLabels

const generators = Schema.Array(Schema.Struct({ name: Schema.String, files: Schema.Array(Schema.String) }))

const Kustomization = Schema.Struct({
  apiVersion: Schema.Literal("kustomize.config.k8s.io/v1beta1"),
  kind: Schema.Literal("Kustomization"),
  namespace: Schema.String,
  resources: Schema.Array(Schema.String),
  images: Schema.Tuple([Schema.Struct({ name: Schema.String, newName: Schema.String, newTag: Schema.String })]),
  configMapGenerator: generators,
  secretGenerator: generators
})

const text = (file: string): string => fs.readFileSync(path.join(folder, file), "utf8")

const only = <A>(what: string, values: ReadonlyArray<A>): A => {
  const [value] = values
  if (value === undefined || values.length > 1) throw new Error(`There are ${values.length} of ${what}`)
  return value
}

/** Checks `deploy/kubernetes` against the image. */
export const check = async (image: Image, port: number, scratch: string): Promise<string> => {
  // no schema of it is published: an own one, which allows nothing else
  const kustomization = Schema.decodeUnknownSync(Kustomization)(parse(text("kustomization.yaml")), {
    onExcessProperty: "error"
  })
  const resources = kustomization.resources.flatMap((file) =>
    // the version that the API server reads
    parseAllDocuments(text(file), { version: "1.1" }).map((document) => decodeResource(document.toJS()))
  )
  for (const resource of resources) await conforms(resource)
  hasKnownMembers(resources, scratch)

  const deployments = resources.filter(({ kind }) => kind === "Deployment")
  const { spec } = Schema.decodeUnknownSync(Deployment)(only("deployments", deployments))
  const pod = spec.template.spec
  const [container] = pod.containers
  for (const resource of resources.filter(({ kind }) => choosing.has(kind))) {
    equal(`the pods of ${resource.kind}`, chosen(decodeChooses(resource)), spec.selector.matchLabels)
  }
  equal("labels of the pods", spec.template.metadata.labels, spec.selector.matchLabels)
  equal("image", container.image, only("images", kustomization.images).name)
  equal("user", { uid: pod.securityContext.runAsUser, gid: pod.securityContext.runAsGroup }, image.user)
  equal("group of the volumes", pod.securityContext.fsGroup, image.user.gid)
  equal("port of the container", container.ports[0].containerPort, port)
  equal("port of the admin listener", container.ports[1].containerPort, expectedAdminPort)
  equal("port that is scraped", spec.template.metadata.annotations["prometheus.io/port"], String(expectedAdminPort))

  const least = container.lifecycle.preStop.sleep.seconds + 2 * Duration.toSeconds(maxDrainWait)
  if (pod.terminationGracePeriodSeconds < least) {
    throw new Error(`terminationGracePeriodSeconds is less than the ${least} seconds that a gateway may take to end`)
  }

  const files = new Map(container.volumeMounts.flatMap(({ mountPath, name }) => {
    const volume = only(`volumes ${name}`, pod.volumes.filter((volume) => volume.name === name))
    const [generated, generator] = volume.secret === undefined
      ? [volume.configMap?.name, kustomization.configMapGenerator]
      : [volume.secret.secretName, kustomization.secretGenerator]
    const { files } = only(`generators of ${generated}`, generator.filter(({ name }) => name === generated))
    return files.map((file): [string, string] => [
      path.join(mountPath, file),
      volume.secret === undefined ? path.join(folder, file) : path.join(root, example)
    ])
  }))
  const decoded = await settings({
    environment: {
      ...image.environment,
      ...Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]))
    },
    args: container.args,
    files
  })
  shared("kubernetes", decoded, port)
  return `${resources.length} resources have the members and values of the API; names, files, ports and times fit`
}
