/** Asks for confirmation of an irreversible action, after stating its effect. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"

/**
 * A modal dialog with focus on its cancel button. The browser traps the focus in the dialog, and closes the dialog with
 * Escape.
 */
export const Confirm = ({ children, onCancel, onConfirm, title, verb }: {
  readonly title: string
  readonly verb: string
  readonly onConfirm: () => void
  readonly onCancel: () => void
  readonly children: ComponentChildren
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="card" aria-labelledby="confirm-title" onClose={onCancel}>
      <h2 id="confirm-title">{title}</h2>
      {children}
      <p class="row">
        <button type="button" onClick={onConfirm}>{verb}</button>
        <button type="button" class="plain" autofocus onClick={onCancel}>Cancel</button>
      </p>
    </dialog>
  )
}
