/** The first of what a dry run has found, in a dialog. It scrolls inside itself, also by keyboard. */
import type { ComponentChildren } from 'preact';

interface WhichOf {
  /** `jobs` */
  readonly of: string;
  /** Items of a list. */
  readonly children: ComponentChildren;
}

export function Which({ of, children }: WhichOf) {
  return (
    <div class="ids scroll" tabIndex={0} role="region" aria-label={`Which ${of}`}>
      <ul>{children}</ul>
    </div>
  );
}
