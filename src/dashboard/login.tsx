/** Asks for a token. The API gives a cookie for it that no script can read. */
import { useState } from 'preact/hooks';
import { ask } from './api.ts';
import { ProblemNote } from './parts/problem.tsx';
import { countText } from './parts/words.ts';

export interface Session {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly queues?: readonly string[];
  readonly csrf: string;
}

export function Login({ done }: { readonly done: (session: Session) => void }) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<unknown>();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setProblem(undefined);
    try {
      done(await ask<Session>('POST session', { token: token.trim() }));
    } catch (error) {
      setProblem(error);
    }
  }

  return (
    <form class="login" onSubmit={(event) => void submit(event)}>
      <h1>Log in</h1>
      <p>
        This daemon wants a token. <code>duestream tokens create</code> makes one.
      </p>
      <label>
        Token
        <input
          type="password"
          autocomplete="current-password"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <ProblemNote problem={problem} />
      <p class="actions">
        <button type="submit" class="primary">
          Log in
        </button>
      </p>
    </form>
  );
}

/** Who is logged in, for the head of the page. */
export const whoText = ({ name, scopes, queues }: Session): string =>
  `${name} (${scopes.join(', ')}${queues === undefined ? '' : `; ${countText(queues.length, 'queue')}`})`;
