/** A sample of the interleavings of callers, subscriptions, events and lost connections. */
import { testSeeds } from "./interleavings.ts"

testSeeds(1)
