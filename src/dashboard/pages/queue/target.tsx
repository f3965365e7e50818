/** The target of a queue whose jobs call a URL: what is called and how, and one request to try it. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { words } from '../../words/words.ts';

const { target: said } = words.queue;

interface Shown {
  readonly queue: string;
  readonly settings: Schemas['SettingsView'] | undefined;
}

/** As it is said: a URL, or an object with one. */
interface Said {
  readonly url: string;
  readonly method?: string;
  readonly secret?: string;
}

function targetOf({ settings }: Schemas['SettingsView']): Said | undefined {
  const all: Readonly<Record<string, unknown>> = { ...settings };
  const given = all.target;
  if (typeof given === 'string') return { url: given };
  return typeof given === 'object' && given !== null && 'url' in given
    ? { ...given, url: String(given.url) }
    : undefined;
}

export function Target({ queue, settings }: Shown) {
  const target = settings && targetOf(settings);
  if (!target) return null;
  const { url, method = 'POST', secret } = target;
  return (
    <section aria-labelledby="target">
      <header class="sec">
        <h2 id="target">{said.title}</h2>
        <p>{said.text}</p>
      </header>
      <p>
        <code>
          {method} {url}
        </code>{' '}
        <span class="quiet">{secret === undefined ? said.unsigned : said.signed(secret)}</span>
      </p>
      <May scope="admin" queue={queue}>
        <Try queue={queue} />
      </May>
    </section>
  );
}

/** The request goes out at once, so the button says so. */
function Try({ queue }: { readonly queue: string }) {
  const [tried, setTried] = useState<Schemas['TargetTried']>();
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function send(): Promise<void> {
    setBusy(true);
    setProblem(undefined);
    setTried(undefined);
    try {
      setTried(await ask(calls.targetsTry, { queue }, {}));
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => void send()}>
        {said.try}
      </button>
      <ProblemNote problem={problem} />
      {tried === undefined ? null : <Steps tried={tried} />}
    </>
  );
}

const Steps = ({ tried: { steps, means, why } }: { readonly tried: Schemas['TargetTried'] }) => (
  <div role="status">
    <ol>
      {steps.map(({ step, isWell, text }) => (
        <li key={step}>
          <b>{isWell ? said.well : said.failed}</b> {said.steps[step] ?? step}: {text}
        </li>
      ))}
    </ol>
    <p>
      {said.means[means] ?? means}
      {why === undefined ? '' : ` ${why}`}
    </p>
  </div>
);
