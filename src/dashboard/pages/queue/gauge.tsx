/** How much of a limit is used, as a tube that fills. */

/** What a gauge shows. */
export interface Reading {
  readonly name: string;
  /** What is used, and of what. */
  readonly used: string;
  readonly of: string;
  /** From 0 to 1. */
  readonly share: number;
  readonly isFull: boolean;
  readonly note: string;
}

export function Gauge({ name, used, of, share, isFull, note }: Reading) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <li class={isFull ? 'gauge full' : 'gauge'}>
      <header>
        <b>{name}</b>
        <span>
          <b>{used}</b>
          {of}
        </span>
      </header>
      <div
        class="tube"
        role="meter"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-label={`${name}: ${used}${of}`}
      >
        <i style={{ width: `${percent}%` }} />
      </div>
      <p>{note}</p>
    </li>
  );
}
