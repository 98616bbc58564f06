/** What passed while a client did something, as a file that is played back without the client. */
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"

/** A request and its answer, as text; of the headers those that say something of the message. Status 0 is no answer. */
export const Exchange = Schema.Struct({
  method: Schema.String,
  path: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  body: Schema.String,
  answer: Schema.Struct({ status: Schema.Int, type: Schema.String, body: Schema.String })
})
export type Exchange = typeof Exchange.Type

/** The upstreams of a gateway, by the setting that names them. */
export const roles = {
  api: "TRIGATE_TRADING_API_URL",
  node: "TRIGATE_TRADING_NODE_URL",
  tokens: "TRIGATE_TOKEN_CHAIN_URL",
  layer2: "TRIGATE_LAYER2_URL"
} as const

export type Role = keyof typeof roles

export const isRole = (name: string): name is Role => name in roles

const Exchanges = Schema.Array(Exchange)

/** A session of a client, in the order of the requests. */
export const Recording = Schema.Struct({
  client: Schema.String.annotate({ description: "Client and version" }),
  time: Schema.Int.annotate({
    description: "When it began, in milliseconds: signed actions are valid for some time only"
  }),
  environment: Schema.Record(Schema.String, Schema.String).annotate({
    description: "Settings of the gateway besides its upstreams"
  }),
  exchanges: Exchanges.annotate({ description: "Between client and gateway" }),
  upstreams: Schema.Struct({
    api: Schema.optionalKey(Exchanges),
    node: Schema.optionalKey(Exchanges),
    tokens: Schema.optionalKey(Exchanges),
    layer2: Schema.optionalKey(Exchanges)
  }).annotate({ description: "Between gateway and upstreams; none at all is the sandbox" })
})
export type Recording = typeof Recording.Type

/** Where the recordings are. */
export const recordings = new URL("fixtures/", import.meta.url)

const fileOf = (name: string): URL => new URL(`${name}.json`, recordings)

/** The names of all recordings: client and what it does, as `viem/batches`. */
export const names = Fs.globSync("**/*.json", { cwd: recordings }).map((file) => file.replace(/\.json$/u, ""))
  .toSorted()

export const exists = (name: string): boolean => Fs.existsSync(fileOf(name))

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Recording))

export const read = (name: string): Recording => decode(Fs.readFileSync(fileOf(name), "utf8"))

export const write = (name: string, recording: Recording): void => {
  Fs.mkdirSync(new URL(".", fileOf(name)), { recursive: true })
  Fs.writeFileSync(fileOf(name), `${JSON.stringify(recording, undefined, 2)}\n`)
}
