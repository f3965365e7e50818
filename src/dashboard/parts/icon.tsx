/** Signs beside words: drawn in a square of 16, in the colour of the text. A sign never stands for a word alone. */
import type { JSX } from 'preact';

const ICONS = {
  now: () => <path d="M2 8.5h2.5L6.5 3l3 10 2-4.5H14" />,
  jobs: () => <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />,
  dead: () => (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="m6 6 4 4m0-4-4 4" />
    </>
  ),
  schedules: () => (
    <>
      <rect x="2.5" y="3.5" width="11" height="10" rx="1.5" />
      <path d="M2.5 6.5h11M5.5 2v2.5M10.5 2v2.5" />
    </>
  ),
  workers: () => (
    <>
      <rect x="2.5" y="2.5" width="11" height="4.5" rx="1" />
      <rect x="2.5" y="9" width="11" height="4.5" rx="1" />
      <path d="M5 4.75h.01M5 11.25h.01" />
    </>
  ),
  simulate: () => <path d="M2.5 13.5V2.5M2.5 13.5h11M5 11c2 0 2.5-6 4.5-6S12 8 13.5 8" />,
  slo: () => <path d="M8 2.500a5.5 5.5 0 1 0 5.5 5.500M8 8l4-4" />,
  audit: () => (
    <>
      <path d="M8 4.500V8l2.5 1.5" />
      <path d="M2.7 6A5.5 5.5 0 1 1 2.5 8.500M2.5 3v3h3" />
    </>
  ),
  plus: () => <path d="M8 3v10M3 8h10" />,
  download: () => <path d="M8 2.500v8M4.500 7.500 8 11l3.500-3.500M3 13.500h10" />,
  search: () => (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3 3" />
    </>
  ),
  more: () => <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" />,
  pause: () => <path d="M5.5 3.500v9M10.5 3.500v9" />,
  play: () => <path d="M5 3.500v9l7-4.500z" />,
  chevron: () => <path d="m6 4 4 4-4 4" />,
  down: () => <path d="m4 6 4 4 4-4" />,
  close: () => <path d="m4 4 8 8m0-8-8 8" />,
  clock: () => (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 5v3l2 1.5" />
    </>
  ),
  ship: () => <path d="M8 13V3M4 7l4-4 4 4" />,
  person: () => (
    <>
      <circle cx="8" cy="5.5" r="2.5" />
      <path d="M3 13.500c.5-3 2.5-4 5-4s4.5 1 5 4" />
    </>
  ),
  herd: () => <path d="M3 13V9M6.3 13V6M9.6 13V3M13 13V8" />,
  tag: () => <path d="M2.5 7.500v-5h5l6 6-5 5zM5 5h.01" />,
  copy: () => (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 3.500a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1" />
    </>
  ),
  replay: () => <path d="M3 8a5 5 0 1 0 1.5-3.500L3 6M3 2.500V6h3.5" />,
  // Of states.
  's-scheduled': () => <circle cx="8" cy="8" r="5" stroke-dasharray="2.2 1.7" />,
  's-waiting': () => (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M5.5 8h5" />
    </>
  ),
  's-ready': () => <circle cx="8" cy="8" r="5" />,
  's-running': () => (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M8 3a5 5 0 0 1 0 10z" fill="currentColor" />
    </>
  ),
  's-done': () => (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="m5.7 8.2 1.6 1.6 3-3.3" />
    </>
  ),
  's-cancelled': () => (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="m4.5 11.5 7-7" />
    </>
  ),
  's-dead': () => (
    <>
      <circle cx="8" cy="8" r="5.5" fill="currentColor" stroke="none" />
      <path d="m6 6 4 4m0-4-4 4" stroke="var(--ground)" />
    </>
  ),
  's-failed': () => (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="m6.2 6.2 3.6 3.6m0-3.6-3.6 3.6" />
    </>
  ),
  's-retry': () => <path d="M3.5 8a4.5 4.5 0 1 0 1.3-3.200L3.5 6M3.5 3v3h3" />,
  's-expired': () => (
    <>
      <circle cx="8" cy="8" r="5" stroke-dasharray="2.2 1.7" />
      <path d="m5.5 10.5 5-5" />
    </>
  ),
  language: () => (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M2.5 8h11M8 2.5c-3.5 3.5-3.5 7.5 0 11c3.5-3.5 3.5-7.5 0-11" />
    </>
  ),
} satisfies Readonly<Record<string, () => JSX.Element>>;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      {ICONS[name]()}
    </svg>
  );
}
