/** The login: a token that `duestream tokens create` has made becomes a session of this browser. */
import { useState } from 'preact/hooks';
import { type ApiError, logIn, type Session } from '../api.ts';
import { ProblemNote } from '../parts/problem.tsx';
import { words } from '../words/words.ts';

interface Given {
  readonly enter: (session: Session) => void;
  /** Why nobody is logged in; undefined after a logout. */
  readonly why: ApiError | undefined;
}

export function Login({ enter, why }: Given) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      enter(await logIn(token.trim()));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  if (why?.isOfApplication) {
    return (
      <main class="login" id="content" tabIndex={-1}>
        <h1>duestream</h1>
        <ProblemNote problem={why} />
      </main>
    );
  }
  return (
    <main class="login" id="content" tabIndex={-1}>
      <form onSubmit={(event) => void submit(event)}>
        <h1>duestream</h1>
        <label>
          {words.login.token}
          <input
            type="password"
            name="token"
            autoComplete="current-password"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <ProblemNote problem={problem} />
        <button type="submit" class="primary" disabled={isBusy || token.trim() === ''}>
          {words.login.logIn}
        </button>
        <p class="quiet">
          {words.login.from} <code>duestream tokens create --name me --scope write</code>. {words.login.scope}{' '}
          <code>read</code> {words.login.seesJobs} <code>data</code> {words.login.seesData}
        </p>
      </form>
    </main>
  );
}
