/**
 * What is around each page: a rail with the places and the queues, those in trouble first; a bar that says where one is and
 * whether it is live. Where the window is narrow there are tabs at the thumb instead of the rail, and a sheet with the rest.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { logOut, type Session } from './api.ts';
import { KeyHelp, search } from './keys.tsx';
import { pauseLive, resumeLive, useLive } from './live.ts';
import { cityText, ownZone, secondText } from './parts/clock.ts';
import { Icon } from './parts/icon.tsx';
import { type About, Caller, May } from './parts/may.tsx';
import { ProblemNote } from './parts/problem.tsx';
import { Id } from './parts/table.tsx';
import { numberText } from './parts/words.ts';
import { isPlace, PLACES, type Way } from './places.ts';
import type { Route } from './router.ts';
import { applyTheme, chosenTheme, THEMES, type Theme } from './theme.ts';
import { byTrouble, troubleOf } from './trouble.ts';
import { isLanguage, KEY, LANGUAGES, type Language, language, words } from './words/words.ts';

interface Around {
  readonly route: Route;
  readonly about: About | undefined;
  /** Undefined where none is needed. */
  readonly session: Session | undefined;
  readonly leave: () => void;
  readonly children: ComponentChildren;
}

export function Frame({ route, about, session, leave, children }: Around) {
  const address = addressOf(route);
  const shown = useRef<string>();
  useEffect(() => {
    // Who has chosen a word of a filter chooses on. On another page the focus is at its content, and where it is gone with what was shown.
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (isLost || shown.current !== address) document.getElementById('content')?.focus({ preventScroll: true });
    shown.current = address;
  }, [route]);
  return (
    <Caller.Provider value={about}>
      <button type="button" class="skip" onClick={skip}>
        {words.frame.skip}
      </button>
      <div class="app">
        <aside class="rail" aria-label={words.frame.whereToGo}>
          <Place about={about} />
          <button type="button" class="find" onClick={search}>
            <Icon name="search" />
            <span>{words.places.search}</span>
            <kbd>/</kbd>
          </button>
          <Places label={words.frame.pages} route={route} />
          <Queues route={route} />
          <footer>
            <Mine session={session} leave={leave} />
          </footer>
        </aside>
        <div class="page">
          <Bar route={route} about={about} />
          <main id="content" tabIndex={-1} key={address}>
            {children}
          </main>
        </div>
        <Tabs route={route} address={address} session={session} leave={leave} />
      </div>
      <KeyHelp />
    </Caller.Provider>
  );
}

/** Pages of which the queue is a part of the filter: with another one it is the same page. */
const FILTERED: ReadonlySet<string> = new Set(['jobs', 'dead', 'simulate']);

/** What is another page where it differs. */
const addressOf = ({ name, path }: Route): string => (FILTERED.has(name) ? name : [name, ...path].join('/'));

/** The address has the page behind its #, so the browser cannot jump by itself. */
function skip(): void {
  document.getElementById('content')?.focus();
}

/** Whose jobs these are: nobody is to pause production for staging. */
function Place({ about }: Pick<Around, 'about'>) {
  return (
    <a class="place" href="#/now">
      <i aria-hidden="true" />
      <span>
        <b>{titleOf(about)}</b>
        {about === undefined ? null : (
          <small title={`${about.redis} · ${words.frame.namespace} ${about.namespace}`}>
            <Id text={about.redis.replace(/^rediss?:\/\//, '')} /> · <span class="away">{words.frame.namespace}</span>{' '}
            {about.namespace}
          </small>
        )}
      </span>
    </a>
  );
}

const titleOf = (about: About | undefined): string =>
  about === undefined || about.title === '' ? 'duestream' : about.title;

function Places({ label, route }: { readonly label: string; readonly route: Route }) {
  return (
    <nav aria-label={label}>
      {PLACES.map((way) => (
        <WayLink key={way.name} way={way} isHere={route.name === way.name} />
      ))}
    </nav>
  );
}

interface WayOf {
  readonly way: Way;
  readonly isHere: boolean;
  /** Its name, where there is room for one word. */
  readonly text?: string | undefined;
}

function WayLink({ way, isHere, text }: WayOf) {
  const { name, icon, needs, isRare } = way;
  const link = (
    <a class={isRare && 'rare'} href={`#/${name}`} aria-current={isHere ? 'page' : undefined}>
      <Icon name={icon} />
      <span>{text ?? words.places[name]}</span>
    </a>
  );
  return needs === undefined ? link : <May {...needs}>{link}</May>;
}

/** More than these are nobody's menu: the page Now has all. */
const QUEUES_MAX = 50;

function Queues({ route }: Pick<Around, 'route'>) {
  const { now } = useLive();
  if (now === undefined || now.queues.length === 0) return null;
  const queues = byTrouble(now.queues);
  return (
    <nav aria-label={words.frame.queuesByTrouble} class="queues">
      <h2>
        {words.frame.queues}
        <May scope="write">
          <a href="#/create" title={words.places.create} aria-label={words.places.create}>
            <Icon name="plus" />
          </a>
        </May>
      </h2>
      {queues.slice(0, QUEUES_MAX).map((one) => {
        const { level, note } = troubleOf(one);
        return (
          <a
            key={one.queue}
            href={`#/queue/${encodeURIComponent(one.queue)}`}
            aria-current={route.name === 'queue' && route.path[0] === one.queue ? 'page' : undefined}
          >
            <i class={`lamp ${level}`} aria-hidden="true" />
            <span>{one.queue}</span>
            {note === '' ? null : <small>{note}</small>}
          </a>
        );
      })}
      {queues.length > QUEUES_MAX ? <a href="#/now">{words.frame.allQueues(numberText(queues.length))}</a> : null}
    </nav>
  );
}

function Bar({ route, about }: Pick<Around, 'route' | 'about'>) {
  return (
    <header class="bar">
      <a class="place" href="#/now" title={about && `${about.redis} · ${words.frame.namespace} ${about.namespace}`}>
        <i aria-hidden="true" />
        <b>{titleOf(about)}</b>
      </a>
      <ol class="crumbs">
        {crumbsOf(route).map(({ text, href }) => (
          <li key={text}>{href === undefined ? <b>{text}</b> : <a href={href}>{text}</a>}</li>
        ))}
      </ol>
      {CREATING.has(route.name) ? (
        <May scope="write">
          <a class="btn desk" href="#/create">
            <Icon name="plus" />
            {words.places.create}
          </a>
        </May>
      ) : null}
      <Live />
    </header>
  );
}

/** Pages about jobs of all queues: from there one makes another. A queue has its own button. */
const CREATING: ReadonlySet<string> = new Set(['now', 'jobs']);

interface Crumb {
  readonly text: string;
  /** Left out where one is. */
  readonly href?: string;
}

/** A new schedule, or one that is there. */
function ofForm([action, name]: Route['path']): readonly Crumb[] {
  if (action !== 'edit' || name === undefined) return [{ text: words.schedules.makeTitle }];
  return [{ text: name, href: `#/schedule/${encodeURIComponent(name)}` }, { text: words.schedules.editTitle(name) }];
}

/** @example crumbsOf(routeOf('#/job/emails/a')) // Now / emails / Jobs / a */
function crumbsOf({ name, path }: Route): readonly Crumb[] {
  const [first = '', second = ''] = path;
  const { places } = words;
  const now = { text: places.now, href: '#/now' };
  const queue = { text: first, href: `#/queue/${encodeURIComponent(first)}` };
  if (name === 'queue') return [now, { text: first }];
  if (name === 'job') {
    return [now, queue, { text: places.jobs, href: `#/jobs/${encodeURIComponent(first)}` }, { text: second }];
  }
  if (name === 'schedules' && first !== '') return [{ text: places.schedules, href: '#/schedules' }, ...ofForm(path)];
  if (name === 'schedule') return [{ text: places.schedules, href: '#/schedules' }, { text: first }];
  const text = isPlace(name) ? places[name] : name;
  // Pages about a part of a queue have its name in their address.
  return first === '' ? [{ text }] : [now, queue, { text }];
}

/** Whether what one sees is of this second. The clock is that of the last look; nobody has to hear it each second. */
function Live() {
  const { now, state, hasGap, why } = useLive();
  return (
    <>
      {hasGap ? (
        <button type="button" class="primary" onClick={() => location.reload()}>
          {words.frame.missedLooks}
        </button>
      ) : null}
      <span class={`live ${state}`} title={why}>
        <span role="status">{words.frame.live[state]}</span>
        {now === undefined ? null : (
          <small aria-hidden="true" title={ownZone()}>
            {secondText(now.nowMs)} <span class="desk">{cityText(ownZone())}</span>
          </small>
        )}
      </span>
      <span class="desk">
        <PauseButton />
      </span>
    </>
  );
}

function PauseButton() {
  const isPaused = useLive().state === 'paused';
  return (
    <button
      type="button"
      class="ghost"
      aria-pressed={isPaused}
      title={words.frame.pauseMeans}
      onClick={isPaused ? resumeLive : pauseLive}
    >
      {isPaused ? words.frame.goOn : words.frame.pause}
    </button>
  );
}

interface Below extends Pick<Around, 'route' | 'session' | 'leave'> {
  readonly address: string;
}

/** Places at the thumb, and a sheet with those that one needs less often. It closes on the way to another page. */
function Tabs({ route, address, session, leave }: Below) {
  const sheet = useRef<HTMLElement>(null);
  const id = useId();
  const close = () => sheet.current?.hidePopover();
  useEffect(close, [address]);
  return (
    <>
      <nav class="tabs" aria-label={words.frame.pages}>
        {PLACES.filter(({ isTab }) => isTab).map((place) => (
          <WayLink
            key={place.name}
            way={place}
            text={words.frame.short[place.name]}
            isHere={route.name === place.name}
          />
        ))}
        <button type="button" onClick={search}>
          <Icon name="search" />
          {words.frame.search}
        </button>
        <button type="button" {...{ popovertarget: id }}>
          <Icon name="more" />
          {words.frame.more}
        </button>
      </nav>
      <aside ref={sheet} id={id} class="sheet" aria-label={words.frame.more} {...{ popover: 'auto' }}>
        {/* A link to the page that is shown changes no address, and closes it as well. */}
        {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: Enter on a link is a click. */}
        <div onClick={close}>
          <Places label={words.frame.allPages} route={route} />
          <May scope="write">
            <a href="#/create">
              <Icon name="plus" />
              {words.places.create}
            </a>
          </May>
        </div>
        <div class="mine">
          <Mine session={session} leave={leave} />
          <PauseButton />
        </div>
      </aside>
    </>
  );
}

/** Who looks, and how it looks. */
function Mine({ session, leave }: Pick<Around, 'session' | 'leave'>) {
  return (
    <>
      {session === undefined ? null : <Who session={session} leave={leave} />}
      <ThemeChoice />
      <LanguageChoice />
    </>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(chosenTheme());
  const name = useId();
  return (
    <fieldset class="theme">
      <legend>{words.frame.colours}</legend>
      {THEMES.map((one) => (
        <label key={one}>
          <input
            type="radio"
            name={name}
            checked={theme === one}
            onChange={() => {
              setTheme(one);
              applyTheme(one);
            }}
          />
          <span>{words.frame.themes[one]}</span>
        </label>
      ))}
    </fieldset>
  );
}

function LanguageChoice() {
  return (
    <label class="language">
      <Icon name="language" />
      <span class="away">{words.frame.language}</span>
      <select
        value={language}
        onChange={({ currentTarget: { value } }) => {
          if (isLanguage(value)) chooseLanguage(value);
        }}
      >
        {Object.entries(LANGUAGES).map(([tag, { name }]) => (
          <option key={tag} value={tag} lang={tag}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Texts are chosen when the pages are loaded. */
function chooseLanguage(chosen: Language): void {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Storage may be forbidden: the language stays.
    return;
  }
  location.reload();
}

function Who({ session, leave }: { readonly session: Session; readonly leave: () => void }) {
  const [problem, setProblem] = useState<unknown>();
  return (
    <div class="who">
      <Icon name="person" />
      <span title={session.scopes.join(', ')}>{session.name}</span>
      {session.login === 'token' ? (
        <button type="button" class="ghost" onClick={() => void logOut().then(leave, setProblem)}>
          {words.frame.logOut}
        </button>
      ) : null}
      <ProblemNote problem={problem} />
    </div>
  );
}
