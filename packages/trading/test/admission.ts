/** An admission whose network stands among its options; mainnet when it does not. */
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Layer from "effect/Layer"

export interface Options extends Admission.Options {
  readonly profile?: VenueProfile.VenueProfile
}

export const make = ({ profile = VenueProfile.mainnet, ...options }: Options = {}) => Admission.make(profile, options)

export const layer = ({ profile = VenueProfile.mainnet, ...options }: Options = {}) =>
  Layer.provide(Admission.layer(options), VenueProfile.layer(profile))
