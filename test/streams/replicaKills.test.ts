/** A sample of random kills of replicas, of the store that they share, of connections and callers. */
import { testSeeds } from "./replicaKills.ts"

testSeeds(1, 6)
