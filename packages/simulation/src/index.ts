export * as Simulation from "./Simulation.ts"
