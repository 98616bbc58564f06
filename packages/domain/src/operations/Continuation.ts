/**
 * Effects in continuation-passing style. They run synchronously, without a fiber, until an effect has to wait.
 *
 * An effect has one of three forms. An `Exit` is a finished effect. A {@link Suspended} effect consists of a step that
 * this module executes, and of the frames (continuations) that run after the step. Any other effect is left to a fiber.
 * The combinators preserve the form if possible. {@link run} executes an effect synchronously as far as possible, and
 * returns the part that a fiber has to run; a fiber can also run the whole effect.
 */
// @effect-diagnostics anyUnknownInErrorContext:off -- frames of effects of all types share one stack
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"

/** Continues an effect, synchronously or later; called at most once. */
export type Resume<A, E = never, R = never> = (next: Effect.Effect<A, E, R>) => void

/** Cancels a pending operation; does nothing if it has completed. */
export type Cancel = () => void

type AnyEffect = Effect.Effect<unknown, unknown, unknown>

/** The continuation of an effect. Its members are methods, so that frames of different types can share one stack. */
interface Frame {
  /** Continues with an exit; can push the frame that runs after the next effect. */
  resume(exit: Exit.Exit<unknown, unknown>, run: Run): AnyEffect
  /**
   * Continues with an effect that a fiber runs. Registers a cleanup with `onCancel`, in case the fiber never runs it.
   */
  defer(effect: AnyEffect, onCancel: (cancel: Cancel) => void): AnyEffect
  /** Cancels the operation that this step waits for. */
  cancel?(): void
}

/** Returns whether an effect is an `Exit`. */
const isReady = <A, E, R>(self: Effect.Effect<A, E, R>): self is Exit.Exit<A, E> => Exit.isExit(self)

// Steps and frames are instances of classes, not literals or closures. After literals or closures of one kind survive a
// few garbage collections, V8 allocates later ones directly in the old generation. Dead objects in the old generation keep
// young objects alive until a full collection.

/** One synchronous run of an effect. */
class Run {
  context: Context.Context<never>
  readonly #settled: { call(rest: AnyEffect): void }
  readonly #stack: Array<Frame> = []
  #cancels: Array<Cancel> | undefined
  #abort: Cancel = constVoid
  #effect: AnyEffect | undefined
  #resumed: AnyEffect | undefined
  #isOver = false
  #isStepping = false

  constructor(context: Context.Context<never>, settled: { call(rest: AnyEffect): void }) {
    this.context = context
    this.#settled = settled
  }

  push(frame: Frame) {
    this.#stack.push(frame)
  }

  /** Suspends the run until `register` calls its callback with the next effect. */
  wait(register: (resume: (next: AnyEffect) => void) => Cancel) {
    let isWaiting = true
    this.#abort = register((next) => {
      if (!isWaiting || this.#isOver) return
      isWaiting = false
      if (this.#isStepping) this.#resumed = next
      else this.proceed(next)
    })
  }

  /** Executes the steps of an effect until one of them has to wait. */
  proceed(first: AnyEffect) {
    this.#effect = first
    this.#isStepping = true
    for (;;) {
      const made = Result.try({ try: () => this.#steps(), catch: Exit.die })
      if (Result.isSuccess(made)) break
      this.#effect = made.failure
    }
    this.#isStepping = false
  }

  #steps() {
    while (this.#effect !== undefined && !this.#isOver) {
      const effect = this.#effect
      const next = effect instanceof Suspended ? effect.step(this) : this.#continue(effect)
      this.#effect = next ?? this.#resumed
      this.#resumed = undefined
    }
  }

  #continue(effect: AnyEffect): AnyEffect | undefined {
    const frame = this.#stack.pop()
    if (frame === undefined) {
      this.#isOver = true
      this.#settled.call(effect)
      return undefined
    }
    if (frame instanceof Restored) this.context = frame.context
    return Exit.isExit(effect) ? frame.resume(effect, this) : frame.defer(effect, (cancel) => this.#defer(cancel))
  }

  #defer(cancel: Cancel) {
    this.#cancels ??= []
    this.#cancels.push(cancel)
  }

  cancel() {
    this.#isOver = true
    this.#abort()
    while (this.#stack.length > 0) this.#stack.pop()?.cancel?.()
    for (const cancel of this.#cancels ?? []) cancel()
  }
}

/**
 * Runs an effect synchronously as far as possible. The function `settled` receives the effect's exit, or the part that
 * a fiber has to run.
 *
 * An exception from a step becomes a defect. The caller must call the returned function when the remaining work ends,
 * even if the work succeeded.
 */
export const run = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  context: Context.Context<R>,
  settled: (rest: Effect.Effect<A, E, R>) => void
): Cancel => {
  const typed: { call(rest: Effect.Effect<A, E, R>): void } = { call: settled }
  const made = new Run(context, typed)
  made.proceed(self)
  return () => made.cancel()
}

/** An effect that can run synchronously. */
abstract class Suspended<A, E = never, R = never> extends Effectable.Class<A, E, R> {
  /** Executes one step. Returns the next effect, or `undefined` if the run has to wait. */
  abstract step(run: Run): AnyEffect | undefined

  /** Runs the effect in the caller's fiber, and cancels it when that fiber is interrupted. */
  override asEffect(): Effect.Effect<A, E, R> {
    return Effect.contextWith((context: Context.Context<R>) => {
      let cancel: Cancel = constVoid
      const resumed = Effect.callback<A, E, R>((resume) => {
        cancel = run(this, context, resume)
      })
      return Effect.onExitPrimitive(resumed, () => {
        cancel()
        return undefined
      })
    })
  }
}

class Callback<A, E> extends Suspended<A, E> {
  readonly #register: (resume: Resume<A, E>) => Cancel
  constructor(register: (resume: Resume<A, E>) => Cancel) {
    super()
    this.#register = register
  }
  step(run: Run) {
    run.wait(this.#register)
    return undefined
  }
}

class InContext<A, E, R> extends Suspended<A, E, R> {
  readonly #f: (context: Context.Context<R>) => Effect.Effect<A, E, R>
  constructor(f: (context: Context.Context<R>) => Effect.Effect<A, E, R>) {
    super()
    this.#f = f
  }
  step({ context }: Run & { readonly context: Context.Context<R> }) {
    return this.#f(context)
  }
}

/** An effect and its continuation, which becomes a frame on the stack of a run. */
abstract class Continued<A, E, R, B, E2, R2> extends Suspended<B, E2, R2> {
  readonly #first: Effect.Effect<A, E, R>
  constructor(first: Effect.Effect<A, E, R>) {
    super()
    this.#first = first
  }
  step(run: Run): AnyEffect | undefined {
    run.push(this)
    return this.#first
  }
  abstract resume(exit: Exit.Exit<A, E>, run: Run): Effect.Effect<B, E2, R2>
  abstract defer(effect: Effect.Effect<A, E, R>, onCancel: (cancel: Cancel) => void): Effect.Effect<B, E2, R2>
}

class FlatMap<A, E, R, B, E2, R2> extends Continued<A, E, R, B, E | E2, R | R2> {
  readonly #f: (value: A) => Effect.Effect<B, E2, R2>
  constructor(first: Effect.Effect<A, E, R>, f: (value: A) => Effect.Effect<B, E2, R2>) {
    super(first)
    this.#f = f
  }
  resume(exit: Exit.Exit<A, E>) {
    return Effect.flatMapEager(exit, this.#f)
  }
  defer(effect: Effect.Effect<A, E, R>) {
    return Effect.flatMap(effect, this.#f)
  }
}

/** The handlers for the end of an effect. */
interface Ends<A, E, B, E2, R2, C, E3, R3> {
  readonly onFailure: (cause: Cause.Cause<E>) => Effect.Effect<B, E2, R2>
  readonly onSuccess: (value: A) => Effect.Effect<C, E3, R3>
}

class MatchCause<A, E, R, B, E2, R2, C, E3, R3> extends Continued<A, E, R, B | C, E2 | E3, R | R2 | R3> {
  readonly #ends: Ends<A, E, B, E2, R2, C, E3, R3>
  constructor(first: Effect.Effect<A, E, R>, ends: Ends<A, E, B, E2, R2, C, E3, R3>) {
    super(first)
    this.#ends = ends
  }
  resume(exit: Exit.Exit<A, E>): Effect.Effect<B | C, E2 | E3, R2 | R3> {
    return Exit.isSuccess(exit) ? this.#ends.onSuccess(exit.value) : this.#ends.onFailure(exit.cause)
  }
  defer(effect: Effect.Effect<A, E, R>) {
    return Effect.matchCauseEffect(effect, this.#ends)
  }
}

class MapError<A, E, R, E2> extends Continued<A, E, R, A, E2, R> {
  readonly #f: (error: E) => E2
  constructor(first: Effect.Effect<A, E, R>, f: (error: E) => E2) {
    super(first)
    this.#f = f
  }
  resume(exit: Exit.Exit<A, E>) {
    return Exit.mapError(exit, this.#f)
  }
  defer(effect: Effect.Effect<A, E, R>) {
    return Effect.mapError(effect, this.#f)
  }
}

class OnExit<A, E, R> extends Continued<A, E, R, A, E, R> {
  readonly #f: (exit: Exit.Exit<A, E>) => void
  constructor(first: Effect.Effect<A, E, R>, f: (exit: Exit.Exit<A, E>) => void) {
    super(first)
    this.#f = f
  }
  resume(exit: Exit.Exit<A, E>) {
    this.#f(exit)
    return exit
  }
  defer(effect: Effect.Effect<A, E, R>, onCancel: (cancel: Cancel) => void) {
    let isOver = false
    const end = (exit: Exit.Exit<A, E>): undefined => {
      if (isOver) return
      isOver = true
      this.#f(exit)
    }
    // if a fiber is interrupted before it starts, it never calls the handler for the exit
    onCancel(() => end(Exit.interrupt()))
    return Effect.onExitPrimitive(effect, end)
  }
  cancel() {
    this.#f(Exit.interrupt())
  }
}

class Provided<A, E, R, I, S> extends Suspended<A, E, R> {
  readonly first: Effect.Effect<A, E, R>
  readonly key: Context.Key<I, S>
  readonly value: S
  constructor(first: Effect.Effect<A, E, R>, key: Context.Key<I, S>, value: S) {
    super()
    this.first = first
    this.key = key
    this.value = value
  }
  step(run: Run) {
    run.push(new Restored(this, run.context))
    run.context = Context.add(run.context, this.key, this.value)
    return this.first
  }
}

/** The frame after the effect in {@link provide}: restores the previous implementation of the service. */
class Restored<I, S> {
  readonly #provided: { readonly key: Context.Key<I, S>; readonly value: S }
  readonly context: Context.Context<never>
  constructor(
    provided: { readonly key: Context.Key<I, S>; readonly value: S },
    context: Context.Context<never>
  ) {
    this.#provided = provided
    this.context = context
  }
  resume<A, E>(exit: Exit.Exit<A, E>) {
    return exit
  }
  defer(effect: AnyEffect) {
    return Effect.provideService(effect, this.#provided.key, this.#provided.value)
  }
}

/** The functions of an acquired resource. */
interface Resource<A, B, E, R, E2, R2, R3> {
  readonly acquire: Effect.Effect<A, E, R>
  readonly use: (resource: A) => Effect.Effect<B, E2, R2>
  readonly release: (resource: A) => Effect.Effect<void, never, R3>
}

class Acquired<A, B, E, R, E2, R2, R3> extends Continued<A, E, R, B, E | E2, R | R2 | R3> {
  readonly #resource: Resource<A, B, E, R, E2, R2, R3>
  constructor(resource: Resource<A, B, E, R, E2, R2, R3>) {
    super(resource.acquire)
    this.#resource = resource
  }
  resume(
    exit: Exit.Exit<A, E>,
    run: Run & { readonly context: Context.Context<R3> }
  ): Effect.Effect<B, E | E2, R | R2 | R3> {
    if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
    const { release, use } = this.#resource
    run.push(new Releasing(release(exit.value), run.context))
    return use(exit.value)
  }
  defer(acquire: Effect.Effect<A, E, R>) {
    const { release, use } = this.#resource
    return Effect.acquireUseRelease(acquire, use, release)
  }
}

/** Runs a finalizer once, when the effect before it ends or is cancelled. */
class Releasing<R> {
  readonly #release: Effect.Effect<void, never, R>
  readonly #context: Context.Context<R>
  constructor(release: Effect.Effect<void, never, R>, context: Context.Context<R>) {
    this.#release = release
    this.#context = context
  }
  resume<A, E>(exit: Exit.Exit<A, E>) {
    return flatMap(uninterruptible(this.#release), () => exit)
  }
  defer(effect: AnyEffect, onCancel: (cancel: Cancel) => void) {
    let isOver = false
    const release = Effect.suspend(() => {
      if (isOver) return Effect.void
      isOver = true
      return this.#release
    })
    // if a fiber is interrupted before it starts, it never runs the finalizer
    onCancel(() => {
      Effect.runForkWith(this.#context)(release)
    })
    return Effect.ensuring(effect, release)
  }
  cancel() {
    Effect.runForkWith(this.#context)(this.#release)
  }
}

class Uninterruptible<A, E, R> extends Continued<A, E, R, A, E, R> {
  resume(exit: Exit.Exit<A, E>) {
    return exit
  }
  defer(effect: Effect.Effect<A, E, R>) {
    return Effect.uninterruptible(effect)
  }
}

/**
 * Makes an effect that a callback completes. `register` receives the callback, and returns a function that cancels the
 * effect.
 */
export const callback = <A, E = never>(register: (resume: Resume<A, E>) => Cancel): Effect.Effect<A, E> =>
  new Callback(register)

/** Makes an effect from a function that receives the context. */
export const withContext = <A, E, R>(
  f: (context: Context.Context<R>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => new InContext(f)

/** Like `Effect.flatMap`. If `self` and the effects from `f` can run without a fiber, the result can too. */
export const flatMap = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> =>
  self instanceof Suspended ? new FlatMap<A, E, R, B, E2, R2>(self, f) : Effect.flatMapEager(self, f)

/** Like `Effect.map`. If `self` can run without a fiber, the result can too. */
export const map = <A, E, R, B>(self: Effect.Effect<A, E, R>, f: (value: A) => B): Effect.Effect<B, E, R> =>
  flatMap(self, (value) => Exit.succeed(f(value)))

/**
 * Like `Effect.matchCauseEffect`. If `self` and the effects from the handlers can run without a fiber, the result can
 * too.
 */
export const matchCause = <A, E, R, B, E2, R2, C, E3, R3>(
  self: Effect.Effect<A, E, R>,
  ends: Ends<A, E, B, E2, R2, C, E3, R3>
): Effect.Effect<B | C, E2 | E3, R | R2 | R3> => {
  if (self instanceof Suspended) return new MatchCause<A, E, R, B, E2, R2, C, E3, R3>(self, ends)
  if (!isReady(self)) return Effect.matchCauseEffect(self, ends)
  return Exit.isSuccess(self) ? ends.onSuccess(self.value) : ends.onFailure(self.cause)
}

/**
 * Like `Effect.matchEffect`. If `self` and the effects from the handlers can run without a fiber, the result can too.
 */
export const match = <A, E, R, B, E2, R2, C, E3, R3>(
  self: Effect.Effect<A, E, R>,
  { onFailure, onSuccess }: {
    readonly onFailure: (error: E) => Effect.Effect<B, E2, R2>
    readonly onSuccess: (value: A) => Effect.Effect<C, E3, R3>
  }
): Effect.Effect<B | C, E2 | E3, R | R2 | R3> =>
  matchCause(self, {
    onFailure: (cause): Effect.Effect<B, E2, R2> => {
      const error = Cause.findError(cause)
      return Result.isSuccess(error) ? onFailure(error.success) : Exit.failCause(error.failure)
    },
    onSuccess
  })

/** Like `Effect.mapError`. If `self` can run without a fiber, the result can too. */
export const mapError = <A, E, R, E2>(self: Effect.Effect<A, E, R>, f: (error: E) => E2): Effect.Effect<A, E2, R> => {
  if (self instanceof Suspended) return new MapError<A, E, R, E2>(self, f)
  return isReady(self) ? Exit.mapError(self, f) : Effect.mapError(self, f)
}

/**
 * Calls a function once in each run: with the exit of the effect, or with an interruption if the effect is cancelled.
 */
export const onExit = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  f: (exit: Exit.Exit<A, E>) => void
): Effect.Effect<A, E, R> => {
  if (self instanceof Suspended) return new OnExit<A, E, R>(self, f)
  if (!isReady(self)) return Effect.onExit(self, (exit) => Effect.sync(() => f(exit)))
  f(self)
  return self
}

/**
 * Like `Effect.provideService`, for a service that has a default, such as a reference. If `self` can run without a
 * fiber, the result can too.
 */
export const provide = <A, E, R, I, S>(
  self: Effect.Effect<A, E, R>,
  key: Context.Key<I, S>,
  value: NoInfer<S>
): Effect.Effect<A, E, R> => {
  if (self instanceof Suspended) return new Provided<A, E, R, I, S>(self, key, value)
  return isReady(self) ? self : Effect.provideService(self, key, value)
}

/**
 * Applies `Effect.uninterruptible` to the part of an effect that a fiber runs; synchronous steps cannot be interrupted.
 */
export const uninterruptible = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  if (self instanceof Suspended) return new Uninterruptible<A, E, R>(self)
  return isReady(self) ? self : Effect.uninterruptible(self)
}

/**
 * Like `Effect.acquireUseRelease`. If all given effects can run without a fiber, the result can too.
 *
 * Run the result within {@link detached}: otherwise, if the caller cancels, the release can start before the fiber of
 * `use` has ended.
 */
export const acquireUseRelease = <A, B, E, R, E2, R2, R3>(
  acquire: Effect.Effect<A, E, R>,
  use: (resource: A) => Effect.Effect<B, E2, R2>,
  release: (resource: A) => Effect.Effect<void, never, R3>
): Effect.Effect<B, E | E2, R | R2 | R3> =>
  acquire instanceof Suspended
    ? new Acquired<A, B, E, R, E2, R2, R3>({ acquire, use, release })
    : Effect.acquireUseRelease(acquire, use, release)

/** Runs an effect to its end, also if the effect that waits for it is cancelled or interrupted. */
export const detached = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  withContext((context: Context.Context<R>) =>
    callback<A, E>((resume) => {
      let cancel: Cancel = constVoid
      const end = (exit: Exit.Exit<A, E>) => {
        cancel()
        resume(exit)
      }
      cancel = run(self, context, (rest) => {
        if (isReady(rest)) end(rest)
        else Effect.runForkWith(context)(rest).addObserver(end)
      })
      return constVoid
    })
  )

/** Returns whether a context creates spans: the program has a tracer, and the current request is sampled. */
export const isTraced = (context: Context.Context<never>): boolean =>
  Context.getOrUndefined(context, Tracer.Tracer) !== undefined && Context.get(context, References.TracerEnabled)
