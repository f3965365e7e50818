/** Redis, and what `doctor` found. */
import type { Finding, Now } from '../../live.ts';
import { bytesText } from '../../parts/bytes.ts';

const KEEPS: Readonly<Record<string, string>> = {
  always: 'AOF, synced with each write: no acknowledged write is lost',
  everysec: 'AOF, synced every second: a power failure can lose the last two seconds',
  unknown: 'AOF; how often it is synced is not visible',
  no: 'AOF, synced by the system: a power failure can lose half a minute',
  snapshots: 'snapshots only: a crash loses what came after the last one',
  none: 'nothing is kept: a restart loses every job',
};

export function Health({ now: { redis, doctor } }: { readonly now: Now }) {
  if (redis === undefined && doctor === undefined) return null;
  return (
    <section aria-label="Health">
      <h2>Redis, and what doctor found</h2>
      {redis === undefined ? null : (
        <dl class="facts">
          <dt>Memory</dt>
          <dd>{memoryText(redis)}</dd>
          <dt>When it is full</dt>
          <dd>{redis.policy}</dd>
          <dt>What it keeps</dt>
          <dd>{KEEPS[redis.durability] ?? redis.durability}</dd>
        </dl>
      )}
      {doctor === undefined ? null : <Findings findings={doctor.findings} />}
    </section>
  );
}

function memoryText({ usedBytes, maxBytes }: NonNullable<Now['redis']>): string {
  if (maxBytes === 0) return `${bytesText(usedBytes)}, no limit`;
  return `${bytesText(usedBytes)} of ${bytesText(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)`;
}

function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  if (findings.length === 0) return <p class="good">doctor found nothing to mend.</p>;
  return (
    <ul class="findings">
      {findings.map(({ check, status, saw, advice }) => (
        <li key={check} class={status}>
          <strong>{check}</strong> {saw}
          {advice === undefined ? null : <span class="quiet"> – {advice}</span>}
        </li>
      ))}
    </ul>
  );
}
