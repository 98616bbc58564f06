/** `trigate inspect`: describes a signed body: its signer, its mistakes, and their corrections. */
import * as Exchange from "@trigate/client/Exchange"
import { type Address, isJson, printable } from "@trigate/domain/encoding/Encoding"
import { Inspection } from "@trigate/domain/unstable/Inspection"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as SigningWarning from "@trigate/signing/unstable/inspection/SigningMistake"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"

const encode = Schema.encodeEffect(Inspection)

const decodeTyped = Schema.decodeUnknownOption(Signable.WalletData)

const signedLine = ({ typedData, unsigned }: Inspection): string =>
  Option.match(decodeTyped(typedData), {
    onNone: () => unsigned ?? "not known",
    onSome: ({ domain, message, primaryType }) => {
      const members = Object.entries(message).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
      return `${primaryType} in ${domain.name}, chain id ${domain.chainId}: ${members.join(", ")}`
    }
  })

const maxChanges = 4

const changeLine = ({ differences }: Inspection): string => {
  const changes = differences.slice(0, maxChanges).map(({ canonical = "left out", path, sent = "nothing" }) =>
    `${SigningWarning.pathText(path)}: ${sent} -> ${canonical}`
  )
  const more = differences.length - changes.length
  return changes.length === 0
    ? "nothing: the action is in the venue's form"
    : [...changes, ...(more > 0 ? [`and ${more} more`] : [])].join("; ")
}

/**
 * Formats the verdict in five facts, whose lines fit the terminal: the mistake, the action, the signer, the
 * required change, and the message to sign after that change.
 */
const lines = (terminal: number, seen: Inspection): string => {
  const { actionType, diagnosis, network, nonce, outer, scheme, unsigned } = seen
  const window = nonce.inWindow ? "within the venue's nonce window" : "outside of the venue's nonce window"
  return Output.facts([
    ["verdict", diagnosis.detail],
    ["action", `${actionType} (${scheme ?? "signing scheme unknown"}) for ${network}, nonce ${nonce.value}, ${window}`],
    ["signer", outer === undefined ? unsigned ?? "not known" : `${outer.signer}, over ${outer.digest}`],
    ["change", changeLine(seen)],
    ["sign", signedLine(seen)]
  ], terminal)
}

/** A body with its position in the input. */
interface InputBody {
  readonly name: string
  readonly bytes: Uint8Array
}

/** Maximum number of bodies in one file of `trigate inspect`. */
const maxBodies = 10_000

/** Returns the bodies of an input: the whole input, or each line if every line is an object. */
const bodiesIn = (name: string, bytes: Uint8Array): ReadonlyArray<InputBody> => {
  const lines = new TextDecoder().decode(bytes).split("\n").map((line) => line.trim())
  const filled = lines.flatMap((line, at) => line === "" ? [] : [{ name: `${name}, line ${at + 1}`, line }])
  return filled.length < 2 || !filled.every(({ line }) => line.startsWith("{") && isJson(line))
    ? [{ name, bytes }]
    : filled.map(({ line, name }) => ({ name, bytes: new TextEncoder().encode(line) }))
}

type Inspect = (body: Uint8Array) => Effect.Effect<Inspection, { readonly message: string }>

const chooseInspector = (
  gateway: Option.Option<string>,
  expectedSigner: Option.Option<Address>
): Effect.Effect<Inspect, Output.UsageFault, Inspector.Inspector | HttpClient.HttpClient> => {
  const signer = Option.getOrUndefined(expectedSigner)
  return Option.match(gateway, {
    onNone: () =>
      Inspector.Inspector.use((inspector) => Effect.succeed((body: Uint8Array) => inspector.inspect(body, signer))),
    onSome: (url) =>
      Effect.map(
        GatewayAccess.connectTo(url),
        (access) => (body: Uint8Array) => GatewayAccess.over(access, Exchange.inspect(body, signer))
      )
  })
}

/** Returns the output of `--fix`: the corrected body, or the input if the body has no mistake. */
const fixedText = ({ bytes }: InputBody, { corrected }: Inspection): string =>
  corrected?.body ?? new TextDecoder().decode(bytes).trim()

const fixNote = ({ name }: InputBody, { corrected, diagnosis }: Inspection): string => {
  if (corrected === undefined) return `${name}: ${diagnosis.detail}`
  const signature = corrected.signature === "kept"
    ? "the signature matches the corrected body"
    : "sign the corrected body again"
  return `${name}: ${signature}. ${diagnosis.detail}`
}

/**
 * `trigate inspect`: describes signed bodies of `POST /exchange`. By default, inspects them locally and sends nothing.
 * With `--gateway`, sends them to that gateway, which inspects them and does not relay them to the venue.
 */
export const command = Command.make("inspect", {
  body: Argument.String("body").pipe(
    Argument.withDescription(
      "File with a JSON body of POST /exchange, or with one body on each line; - for standard input"
    )
  ),
  network: Output.network,
  gateway: Output.textFlag(
    "gateway",
    "url",
    "Gateway that inspects the body, with its own list of allowed signers (default: inspect locally)"
  ),
  expectedSigner: Output.addressFlag("expected-signer").pipe(
    Flag.optional,
    Flag.withDescription(
      "Address that should have signed; if another address signed, the output names the likely mistake"
    )
  ),
  fix: Output.booleanFlag("fix", "Print the corrected body; mistakes are reported on standard error")
}, ({ body, expectedSigner, fix, gateway }) =>
  Effect.gen(function*() {
    const bodies = bodiesIn(Output.displayName(body), yield* Output.bytes(body))
    if (bodies.length > maxBodies) return yield* Output.fault(`More than ${maxBodies} bodies; split the file`)
    const inspect = yield* chooseInspector(gateway, expectedSigner)
    const isMany = bodies.length > 1
    const terminal = yield* Output.terminalWidth
    for (const each of bodies) {
      const seen = yield* Effect.mapError(
        inspect(each.bytes),
        ({ message }) => Output.fault(`${each.name}: ${message}`)
      )
      if (fix) {
        yield* Output.printNotes([fixNote(each, seen)])
        yield* Output.printText(fixedText(each, seen))
      } else {
        const table = isMany ? `${each.name}: ${printable(seen.diagnosis.detail)}` : lines(terminal, seen)
        yield* Output.print({ json: yield* Effect.orDie(encode(seen)), table })
      }
    }
  })).pipe(
    Command.provide(({ network }) =>
      Layer.merge(Layer.provide(Inspector.layer(), VenueProfile.layer(network)), FetchHttpClient.layer)
    ),
    Command.withGlobalFlags([Output.AsJson]),
    Command.withDescription("Describe a signed body: its signer, its mistakes, and their corrections; nothing is sent"),
    Command.withExamples([
      { command: "trigate inspect body.json", description: "Print the verdict, the signer, and the changes to make" },
      {
        command: "trigate inspect --json body.json",
        description: "Print everything as JSON, with digests, hashes and bytes"
      },
      {
        command: "trigate inspect --expected-signer 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 body.json",
        description: "Find the signing mistake that makes the signature recover to another signer"
      },
      { command: "trigate inspect --fix body.json > fixed.json", description: "Write the corrected body" }
    ])
  )
