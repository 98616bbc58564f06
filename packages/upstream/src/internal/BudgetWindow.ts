/** The window of this process: what has started in each slot, and the sum of it. */
import type { MethodClass } from "@trigate/domain/Operation"
import type { Plan, Room, Slot, Units } from "./BudgetPlan.ts"
import { slotAt } from "./BudgetPlan.ts"

/** A ring of slots that moves on when it is told the time; it counts without allocating anything. */
export class BudgetWindow {
  readonly #plan: Plan
  readonly #size: number
  readonly #units: { readonly [Class in MethodClass]: Float64Array }
  readonly #sum = { read: 0, once: 0 }
  #current = 0

  constructor(plan: Plan) {
    this.#plan = plan
    this.#size = plan.slots + 1
    this.#units = { read: new Float64Array(this.#size), once: new Float64Array(this.#size) }
  }

  get held(): Units {
    return this.#sum
  }

  /** The slot of now. */
  get slot(): number {
    return this.#current
  }

  /** Lets go of what has left the window. */
  moveTo(now: number): void {
    const slot = slotAt(this.#plan, now)
    for (let index = Math.max(this.#current, slot - this.#size) + 1; index <= slot; index++) {
      this.#add(index, "read", -this.#at(index, "read"))
      this.#add(index, "once", -this.#at(index, "once"))
    }
    this.#current = Math.max(this.#current, slot)
  }

  has({ all, reads }: Room): boolean {
    return this.#sum.read <= reads && this.#sum.read + this.#sum.once <= all
  }

  /** Counts units in the slot of now. */
  take(methodClass: MethodClass, units: number): void {
    this.#add(this.#current, methodClass, units)
  }

  /** Takes units out of the slot in which they were counted, as long as the window holds it. */
  refund(slot: number, methodClass: MethodClass, units: number): void {
    if (slot >= this.#current - this.#plan.slots) this.#add(slot, methodClass, -units)
  }

  /** The slots that hold something, the oldest first. */
  slots(): ReadonlyArray<Slot> {
    const oldest = this.#current - this.#plan.slots
    return Array.from({ length: this.#size }, (_, offset) => {
      const index = oldest + offset
      return { index, read: this.#at(index, "read"), once: this.#at(index, "once") }
    }).filter(({ once, read }) => once > 0 || read > 0)
  }

  #place(index: number): number {
    return (index + this.#size) % this.#size
  }

  #at(index: number, methodClass: MethodClass): number {
    return this.#units[methodClass][this.#place(index)] ?? 0
  }

  #add(index: number, methodClass: MethodClass, units: number): void {
    this.#units[methodClass][this.#place(index)] = this.#at(index, methodClass) + units
    this.#sum[methodClass] += units
  }
}
