/** `trigate inspect`: what the gateway sees in a signed body, without a gateway and without sending anything. */
import { Inspection } from "@trigate/domain/Inspection"
import * as JsonText from "@trigate/domain/JsonText"
import * as Admission from "@trigate/trading/Admission"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Input from "./Input.ts"
import * as Params from "./Params.ts"
import * as SignedSending from "./SignedSending.ts"
import { UsageFault } from "./UsageFault.ts"

const encode = Schema.encodeEffect(Inspection)

/** The command. */
export const command = Command.make("inspect", {
  body: Argument.String("body").pipe(
    Argument.withDescription("File with the JSON body of POST /exchange; - reads standard input")
  ),
  network: Params.network,
  expectedSigner: Params.addressFlag("expected-signer").pipe(
    Flag.optional,
    Flag.withDescription("Who should have signed: the likely mistake is looked for")
  )
}, ({ body, expectedSigner }) =>
  Effect.gen(function*() {
    const bytes = yield* Input.bytes(body)
    const admission = yield* Admission.Admission
    const seen = yield* Effect.mapError(
      admission.inspect(bytes, Option.getOrUndefined(expectedSigner)),
      ({ message }) => new UsageFault({ message: `${Input.nameOf(body)}: ${message}` })
    )
    yield* Console.log(JsonText.stringifyPretty(yield* Effect.orDie(encode(seen))))
  })).pipe(
    Command.provide(({ network }) => Admission.layer({ profile: SignedSending.profileOf(network) })),
    Command.withDescription("Say what a gateway sees in a signed body, as JSON; nothing is sent"),
    Command.withExamples([
      { command: "trigate inspect body.json", description: "Scheme, digest, signer, nonce and warnings of a body" },
      {
        command: "trigate inspect --expected-signer 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 body.json",
        description: "Name the mistake that makes the signature somebody else's"
      }
    ])
  )
