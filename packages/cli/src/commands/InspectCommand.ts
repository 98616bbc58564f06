/** `trigate inspect`: who signed a body, what is wrong with it, and how it has to be. */
import { Inspection } from "@trigate/domain/Inspection"
import * as Signable from "@trigate/signing/actions/Signable"
import * as SigningCaution from "@trigate/signing/inspection/SigningCaution"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Input from "../Input.ts"
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
    `${SigningCaution.pathText(path)}: ${sent} -> ${canonical}`
  )
  const more = differences.length - changes.length
  return changes.length === 0
    ? "nothing: the action is as the venue prints it"
    : [...changes, ...(more > 0 ? [`and ${more} more`] : [])].join("; ")
}

/** The verdict in five lines: what is wrong, what it is about, who signed, what to change, and what to sign then. */
const lines = (seen: Inspection): string => {
  const { actionType, diagnosis, network, nonce, outer, scheme, unsigned } = seen
  const window = nonce.inWindow ? "in the window" : "outside of the window"
  return Output.facts([
    ["verdict", diagnosis.detail],
    ["action", `${actionType} (${scheme ?? "not signed here"}) for ${network}, nonce ${nonce.value}, ${window}`],
    ["signer", outer === undefined ? unsigned ?? "not known" : `${outer.signer}, over ${outer.digest}`],
    ["change", changeLine(seen)],
    ["sign", signedLine(seen)]
  ])
}

/** `trigate inspect`. Needs no gateway and sends nothing. */
export const command = Command.make("inspect", {
  body: Argument.String("body").pipe(
    Argument.withDescription("File with the JSON body of POST /exchange; - reads standard input")
  ),
  network: Input.network,
  expectedSigner: Input.addressFlag("expected-signer").pipe(
    Flag.optional,
    Flag.withDescription("Address that should have signed; if another did, the output names the likely mistake")
  )
}, ({ body, expectedSigner }) =>
  Effect.gen(function*() {
    const bytes = yield* Input.bytes(body)
    const inspector = yield* Inspector.Inspector
    const seen = yield* Effect.mapError(
      inspector.inspect(bytes, Option.getOrUndefined(expectedSigner)),
      ({ message }) => Input.fault(`${Input.nameOf(body)}: ${message}`)
    )
    yield* Output.print({ json: yield* Effect.orDie(encode(seen)), table: lines(seen) })
  })).pipe(
    Command.provide(({ network }) => Layer.provide(Inspector.layer(), VenueProfile.layer(network))),
    Command.withGlobalFlags([Output.AsJson]),
    Command.withDescription("Say who signed a body, what is wrong with it, and how it has to be; nothing is sent"),
    Command.withExamples([
      { command: "trigate inspect body.json", description: "Verdict, signer, and what has to be changed and signed" },
      { command: "trigate inspect --json body.json", description: "All of it as JSON, with digests, hashes and bytes" },
      {
        command: "trigate inspect --expected-signer 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 body.json",
        description: "Name the mistake that makes the signature somebody else's"
      }
    ])
  )
