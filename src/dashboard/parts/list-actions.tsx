/** Below a list: look again from its beginning, and show what comes next if there is more. */
import type { Listed } from './asked.ts';

type Actions = Pick<Listed<never>, 'next' | 'isBusy' | 'more' | 'reload'>;

export function ListActions({ next, isBusy, more, reload }: Actions) {
  return (
    <p class="actions">
      <button type="button" onClick={reload}>
        Look again
      </button>
      {next === undefined ? null : (
        <button type="button" onClick={more} disabled={isBusy}>
          Show more
        </button>
      )}
    </p>
  );
}
