/** Where the pages begin: who looks, and which page the address means. */

// First of all: the styles of a page come behind them.
import './css/tokens.css';
import './css/frame.css';
import './css/parts.css';
import './styles.css';

import { type ComponentChildren, type ComponentType, options, render, type VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiError, onStranger, resume, type Session } from './api.ts';
import * as calls from './calls.ts';
import { Frame } from './frame.tsx';
import { Dead } from './pages/dead/dead.tsx';
import { Job } from './pages/job/job.tsx';
import { At } from './pages/jobs/at.tsx';
import { Jobs } from './pages/jobs/jobs.tsx';
import { Login } from './pages/login.tsx';
import { Now } from './pages/now/now.tsx';
import { Closed } from './pages/queue/closed.tsx';
import { Groups } from './pages/queue/groups.tsx';
import { Late } from './pages/queue/late.tsx';
import { Queue } from './pages/queue/queue.tsx';
import { Sets } from './pages/queue/sets.tsx';
import { SchedulePage } from './pages/schedules/schedule.tsx';
import { Schedules } from './pages/schedules/schedules.tsx';
import { Workers } from './pages/workers.tsx';
import { useAsked } from './parts/asked.ts';
import type { About } from './parts/may.tsx';
import { ProblemNote } from './parts/problem.tsx';
import { type Route, useRoute } from './router.ts';
import { applyTheme } from './theme.ts';
import { language, words } from './words/words.ts';

/** Pages of now and then are files of their own, so that the first page stays small. */
const Audit = later(async () => (await import('./pages/audit/audit.tsx')).Audit);
const Create = later(async () => (await import('./pages/create/create.tsx')).Create);
const Simulate = later(async () => (await import('./pages/simulate/simulate.tsx')).Simulate);
const SloReport = later(async () => (await import('./pages/slo/slo.tsx')).SloReport);

/** The word in the address → its page. */
const PAGES: Readonly<Record<string, (route: Route) => preact.JSX.Element>> = {
  now: () => <Now />,
  queue: (route) => <Queue {...route} />,
  groups: (route) => <Groups {...route} />,
  closed: (route) => <Closed {...route} />,
  late: (route) => <Late {...route} />,
  sets: (route) => <Sets {...route} />,
  jobs: (route) => <Jobs {...route} />,
  at: (route) => <At {...route} />,
  job: (route) => <Job {...route} />,
  create: (route) => <Create {...route} key={route.path.join('/')} />,
  dead: (route) => <Dead {...route} />,
  schedules: (route) => <Schedules {...route} />,
  schedule: (route) => <SchedulePage {...route} />,
  simulate: (route) => <Simulate {...route} />,
  slo: () => <SloReport />,
  workers: () => <Workers />,
  audit: (route) => <Audit {...route} />,
};

/** A page that is loaded when somebody goes there. Where it cannot be, that is said; going there again tries again. */
function later<Props extends object>(load: () => Promise<ComponentType<Props>>): (props: Props) => preact.JSX.Element {
  return function Later(props) {
    const [{ Page, problem }, set] = useState<{ readonly Page?: ComponentType<Props>; readonly problem?: unknown }>({});
    useEffect(() => {
      load().then(
        (Page) => set({ Page }),
        (problem: unknown) => set({ problem }),
      );
    }, []);
    return Page === undefined ? <ProblemNote problem={problem} /> : <Page {...props} />;
  };
}

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
  return <Inside route={route} session={session} leave={() => setStranger({})} />;
}

interface Known {
  readonly route: Route;
  /** Undefined where none is needed. */
  readonly session: Session | undefined;
  readonly leave: () => void;
}

/** For somebody who is known. */
function Inside({ route, session, leave }: Known) {
  const about = useAbout();
  useEffect(() => markWindow(route, about), [route, about]);
  const page = PAGES[route.name];
  return (
    <Frame route={route} about={about} session={session} leave={leave}>
      {page ? page(route) : <Missing name={route.name} />}
    </Frame>
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

/** The name of the installation stands in the tab, its colour is the mark in the rail; a stranger sees neither. */
function markWindow({ name, path }: Route, about: About | undefined): () => void {
  const words = [about?.title ?? '', [name, ...path].join(' '), 'duestream'];
  document.title = words.filter((word) => word !== '').join(' · ');
  document.documentElement.dataset.color = about?.color ?? 'none';
  return () => {
    document.title = 'duestream';
    document.documentElement.dataset.color = 'none';
  };
}

function Missing({ name }: { readonly name: string }) {
  return (
    <>
      <h1>{words.frame.noPage(name)}</h1>
      <p>
        <a href="#/now">{words.frame.whatHappensNow}</a>
      </p>
    </>
  );
}

document.documentElement.lang = language;
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
