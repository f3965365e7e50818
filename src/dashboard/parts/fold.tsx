/**
 * What folds behind a button where the window is narrow. In a wide window there is no button, and all of it is shown: the
 * style sheet decides, so it holds also for a window that is turned.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

interface FoldOf {
  /** What the button says. */
  readonly name: string;
  /** Another value closes it: the address, for a menu. */
  readonly closesOn: string;
  readonly children: ComponentChildren;
}

export function Fold({ name, closesOn, children }: FoldOf) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => setOpen(false), [closesOn]);
  return (
    // Escape is heard wherever the focus is inside.
    // biome-ignore lint/a11y/noStaticElementInteractions: the button is what one presses; this only listens.
    <div
      class="fold"
      onKeyDown={({ key }) => {
        if (key !== 'Escape' || !isOpen) return;
        setOpen(false);
        button.current?.focus();
      }}
    >
      <button
        ref={button}
        type="button"
        class="folder"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {name}
      </button>
      {/* A link to the page that is shown changes no address, and closes it as well. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: Enter on a link is a click. */}
      <div
        id={id}
        class={isOpen ? 'folded open' : 'folded'}
        onClick={({ target }) => {
          if (target instanceof Element && target.closest('a') !== null) setOpen(false);
        }}
      >
        {children}
      </div>
    </div>
  );
}
