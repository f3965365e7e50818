/** Where the pages begin, and the frame around each: where one can go, whether it is live, who is logged in, light or dark. */

import { type ComponentChildren, options, render, type VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiError, logOut, onStranger, resume, type Session } from './api.ts';
import * as calls from './calls.ts';
import { pauseLive, resumeLive, useLive } from './live.ts';
import { Audit } from './pages/audit.tsx';
import { Closed } from './pages/closed.tsx';
import { Dead } from './pages/dead.tsx';
import { Groups } from './pages/groups.tsx';
import { Job } from './pages/job.tsx';
import { Jobs } from './pages/jobs/jobs.tsx';
import { Login } from './pages/login.tsx';
import { Now } from './pages/now.tsx';
import { Queue } from './pages/queue.tsx';
import { SchedulePage } from './pages/schedules/schedule.tsx';
import { Schedules } from './pages/schedules/schedules.tsx';
import { Sets } from './pages/sets.tsx';
import { Workers } from './pages/workers.tsx';
import { useAsked } from './parts/asked.ts';
import { Fold } from './parts/fold.tsx';
import { type About, Caller, May, type Needed } from './parts/may.tsx';
import { ProblemNote } from './parts/problem.tsx';
import { Id } from './parts/table.tsx';
import { type Route, useRoute } from './router.ts';
import { applyTheme, chosenTheme, THEMES, type Theme } from './theme.ts';
import './styles.css';

/** The word in the address → its page. */
const PAGES: Readonly<Record<string, (route: Route) => preact.JSX.Element>> = {
  now: () => <Now />,
  queue: (route) => <Queue {...route} />,
  groups: (route) => <Groups {...route} />,
  closed: (route) => <Closed {...route} />,
  sets: (route) => <Sets {...route} />,
  jobs: (route) => <Jobs {...route} />,
  job: (route) => <Job {...route} />,
  dead: (route) => <Dead {...route} />,
  schedules: () => <Schedules />,
  schedule: (route) => <SchedulePage {...route} />,
  workers: () => <Workers />,
  audit: () => <Audit />,
};

/** Where one can go, and what the page asks for there needs. */
const PLACES = [
  { name: 'now', text: 'Now' },
  { name: 'schedules', text: 'Schedules' },
  { name: 'workers', text: 'Workers', needs: { scope: 'read' } },
  { name: 'audit', text: 'Audit', needs: { scope: 'admin' } },
] as const;

function App() {
  // Here, where nothing comes and goes: no change of the address is missed.
  const route = useRoute();
  const [session, setSession] = useState<Session>();
  const [stranger, setStranger] = useState<{ readonly why?: ApiError }>();
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    // Before anything is asked for, so that the first change has its CSRF token.
    void resume()
      .then(setSession, () => undefined)
      .finally(() => setReady(true));
    return onStranger((why) => setStranger({ why }));
  }, []);

  if (!isReady) return null;
  if (stranger) {
    const enter = (who: Session) => {
      setSession(who);
      setStranger(undefined);
    };
    return <Login enter={enter} why={stranger.why} />;
  }
  return <Frame route={route} session={session} leave={() => setStranger({})} />;
}

interface Inside {
  readonly route: Route;
  /** Undefined where none is needed. */
  readonly session: Session | undefined;
  readonly leave: () => void;
}

/** What is around each page of somebody who is known. */
function Frame({ route, session, leave }: Inside) {
  const about = useAbout();
  useEffect(() => document.getElementById('content')?.focus({ preventScroll: true }), [route]);
  useEffect(() => markWindow(route, about), [route, about]);
  const page = PAGES[route.name];
  const address = [route.name, ...route.path].join('/');
  return (
    <Caller.Provider value={about}>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <header class="top">
        <Place about={about} />
        <Lamp />
        <Fold name="Menu" closesOn={address}>
          <nav aria-label="Pages">
            {PLACES.map((place) => (
              <NavLink key={place.name} {...place} isHere={route.name === place.name} />
            ))}
          </nav>
          <LiveButton />
          <ThemeChoice />
          {session === undefined ? null : <Who session={session} leave={leave} />}
        </Fold>
      </header>
      <main id="content" tabIndex={-1} key={address}>
        {page ? page(route) : <Missing name={route.name} />}
      </main>
    </Caller.Provider>
  );
}

const AGAIN_MS = 3000;

/** Which installation this is, and what the caller may do there. Without Redis the daemon cannot say it: it is asked again. */
function useAbout(): About | undefined {
  const { value, problem, reload } = useAsked(calls.about, {});
  useEffect(() => {
    if (problem === undefined) return undefined;
    const timer = setTimeout(reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [problem, reload]);
  return value;
}

/** The name of the installation stands in the tab, its colour at the edge of the page; a stranger sees neither. */
function markWindow({ name, path }: Route, about: About | undefined): () => void {
  const words = [about?.title ?? '', [name, ...path].join(' '), 'duestream'];
  document.title = words.filter((word) => word !== '').join(' · ');
  document.documentElement.dataset.color = about?.color ?? 'none';
  return () => {
    document.title = 'duestream';
    document.documentElement.dataset.color = 'none';
  };
}

/** Whose jobs these are: nobody is to pause production for staging. */
function Place({ about }: { readonly about: About | undefined }) {
  return (
    <div class="place">
      <a class="brand" href="#/now">
        duestream
      </a>
      {about === undefined || about.title === '' ? null : <strong class="title">{about.title}</strong>}
      {about === undefined ? null : (
        <span class="where">
          <Id text={about.redis} /> · namespace {about.namespace}
        </span>
      )}
    </div>
  );
}

interface Link {
  readonly name: string;
  readonly text: string;
  readonly needs?: Needed;
  readonly isHere: boolean;
}

function NavLink({ name, text, needs, isHere }: Link) {
  const link = (
    <a href={`#/${name}`} aria-current={isHere ? 'page' : undefined}>
      {text}
    </a>
  );
  return needs === undefined ? link : <May {...needs}>{link}</May>;
}

/** The address has the page behind its #, so the browser cannot jump by itself. */
function skip(): void {
  document.getElementById('content')?.focus();
}

function Lamp() {
  const { state, hasGap, why } = useLive();
  return (
    <div class="watch">
      <span role="status" class={`lamp ${state}`} title={why}>
        {state}
      </span>
      {hasGap ? (
        <button type="button" class="primary" onClick={() => location.reload()}>
          Some looks were missed: reload
        </button>
      ) : null}
    </div>
  );
}

function LiveButton() {
  const isPaused = useLive().state === 'paused';
  return (
    <button
      type="button"
      class="pause"
      aria-pressed={isPaused}
      title="The live view alone: jobs go on."
      onClick={isPaused ? resumeLive : pauseLive}
    >
      {isPaused ? 'Go on' : 'Pause'}
    </button>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(chosenTheme());
  return (
    <label class="theme">
      <span class="away">Colours</span>
      <select
        value={theme}
        onChange={(event) => {
          const chosen = THEMES.find((one) => one === event.currentTarget.value) ?? 'system';
          setTheme(chosen);
          applyTheme(chosen);
        }}
      >
        {THEMES.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function Who({ session, leave }: { readonly session: Session; readonly leave: () => void }) {
  const [problem, setProblem] = useState<unknown>();
  return (
    <div class="who">
      <span title={session.scopes.join(', ')}>{session.name}</span>
      {session.login === 'token' ? (
        <button type="button" onClick={() => void logOut().then(leave, setProblem)}>
          Log out
        </button>
      ) : null}
      <ProblemNote problem={problem} />
    </div>
  );
}

function Missing({ name }: { readonly name: string }) {
  return (
    <>
      <h1>There is no page “{name}”</h1>
      <p>
        <a href="#/now">What happens now</a>
      </p>
    </>
  );
}

applyTheme();
showDirections();
const root = document.getElementById('app');
if (root) render(<App />, root);
// It says that the page did not come so far.
document.getElementById('unloaded')?.remove();

// Characters that turn the direction of a line are shown as `\\u202e`, in every text of every page: an id of somebody
// else must not look like another one. What is typed or edited keeps them.

const DIRECTION = /\p{Bidi_Control}/gu;

const escapeDirections = (text: string): string =>
  text.replace(DIRECTION, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** From now on, wherever a text becomes part of a page. */
function showDirections(): void {
  options.vnode = (node: VNode<Record<string, unknown>>) => {
    if (typeof node.type !== 'string' || node.type === 'textarea') return;
    const { children, title } = node.props;
    node.props.children = shown(children);
    if (typeof title === 'string') node.props.title = escapeDirections(title);
  };
}

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return escapeDirections(children);
  return Array.isArray(children) ? children.map(shown) : children;
}
