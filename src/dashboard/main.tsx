/** The dashboard: a head with the ways, and the page that the address names. */
import { type ComponentType, render } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ask, useCsrf, whenUnauthorized } from './api.ts';
import { Login, type Session, whoText } from './login.tsx';
import { Audit } from './pages/audit.tsx';
import { Dead } from './pages/dead/dead.tsx';
import { Job } from './pages/job/job.tsx';
import { Jobs } from './pages/jobs/jobs.tsx';
import { Schedule } from './pages/schedules/schedule.tsx';
import { Schedules } from './pages/schedules/schedules.tsx';
import { Queues } from './queues.tsx';
import { type Route, routeOf } from './router.ts';
import './style.css';

const PAGES: Readonly<Record<string, ComponentType<Route>>> = {
  '': Queues,
  jobs: Jobs,
  job: Job,
  dead: Dead,
  schedules: Schedules,
  schedule: Schedule,
  audit: Audit,
};
const WAYS = [
  { page: '', label: 'Queues' },
  { page: 'schedules', label: 'Schedules' },
  { page: 'audit', label: 'Audit' },
];

function App() {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  const [session, setSession] = useState<Session>();
  const [mustLogIn, setMustLogIn] = useState(false);
  const main = useRef<HTMLElement>(null);
  const enter = useCallback((entered: Session) => {
    useCsrf(entered.csrf);
    setSession(entered);
    setMustLogIn(false);
  }, []);
  useEffect(() => {
    const onHash = () => {
      setRoute(routeOf(location.hash));
      main.current?.focus();
    };
    addEventListener('hashchange', onHash);
    // Who is logged in already. On the machine of the daemon there may be nobody, and no need.
    ask<Session>('GET session').then(enter, () => undefined);
    whenUnauthorized(() => setMustLogIn(true));
    return () => removeEventListener('hashchange', onHash);
  }, [enter]);
  const Page = PAGES[route.page];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        main.current?.focus();
      }}>
        To the content
      </a>
      <Head route={route} session={session} />
      <main id="main" ref={main} tabIndex={-1}>
        {mustLogIn ? <Login done={enter} /> : Page === undefined ? <Nowhere /> : <Page key={[route.page, ...route.path].join('/')} {...route} />}
      </main>
    </>
  );
}

function Head({ route, session }: { readonly route: Route; readonly session: Session | undefined }) {
  return (
    <header>
      <nav aria-label="Pages">
        <a class="brand" href="#/">
          duestream
        </a>
        {WAYS.map(({ page, label }) => (
          <a key={page} href={`#/${page}`} aria-current={route.page === page ? 'page' : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {session === undefined ? null : (
        <p class="who">
          {whoText(session)}{' '}
          <button type="button" onClick={() => void ask('DELETE session').then(() => location.reload())}>
            Log out
          </button>
        </p>
      )}
    </header>
  );
}

function Nowhere() {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <a href="#/">To the queues</a>
      </p>
    </>
  );
}

const place = document.getElementById('app');
if (place) render(<App />, place);
