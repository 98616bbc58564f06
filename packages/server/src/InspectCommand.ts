/** `trigate inspect`: what the gateway sees in a signed body, without a gateway and without sending anything. */
import { Address } from "@trigate/domain/Hex"
import { Inspection } from "@trigate/domain/Inspection"
import * as JsonText from "@trigate/domain/JsonText"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import * as Admission from "@trigate/trading/Admission"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** Why a body could not be inspected, in one line. */
export class InspectFault extends Schema.TaggedError<InspectFault>()("InspectFault", { message: Schema.String }) {}

const read = Effect.fnUntraced(function*(path: string) {
  if (path === "-") {
    const stdio = yield* Stdio.Stdio
    const chunks = yield* Stream.runCollect(stdio.stdin)
    return Buffer.concat(chunks)
  }
  const files = yield* FileSystem.FileSystem
  return yield* files.readFile(path)
})

const encode = Schema.encodeEffect(Inspection)

/** The command. */
export const command = Command.make("inspect", {
  body: Argument.String("body").pipe(
    Argument.withDescription("File with the JSON body of POST /exchange; - reads standard input")
  ),
  network: Flag.Literals("network", ["mainnet", "testnet"]).pipe(
    Flag.withDefault("mainnet"),
    Flag.withDescription("The network that the signature is read for")
  ),
  expectedSigner: Flag.String("expected-signer").pipe(
    Flag.withSchema(Address),
    Flag.optional,
    Flag.withDescription("Who should have signed: the likely mistake is looked for")
  )
}, ({ body, expectedSigner }) =>
  Effect.gen(function*() {
    const bytes = yield* Effect.mapError(
      read(body),
      () => new InspectFault({ message: `${body === "-" ? "Standard input" : body} cannot be read` })
    )
    const admission = yield* Admission.Admission
    const seen = yield* Effect.mapError(
      admission.inspect(bytes, Option.getOrUndefined(expectedSigner)),
      (error) => new InspectFault({ message: error.message })
    )
    yield* Console.log(JsonText.stringifyPretty(yield* Effect.orDie(encode(seen))))
  })).pipe(
    Command.provide(({ network }) => Admission.layer({ profile: network === "mainnet" ? mainnet : testnet })),
    Command.withDescription("Say what the gateway sees in a signed body; nothing is sent"),
    Command.withExamples([
      { command: "trigate inspect body.json", description: "Scheme, digest, signer, nonce and warnings of a body" },
      {
        command: "trigate inspect --expected-signer 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 body.json",
        description: "Name the mistake that makes the signature somebody else's"
      }
    ])
  )
