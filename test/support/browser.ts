/**
 * A real browser for the tests of the dashboard. Each window is a stranger of its own (no cookies of others) and is
 * watched: a dialog, an error of a script, a message on the console, something that the Content-Security-Policy refused,
 * a request to another site. `noises` names them all.
 *
 * A canary is markup or script that calls `alert` or sets `window.canary`: where one runs, the window says so.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core';
import { chromium } from 'playwright-core';
import { testChromium } from './chromium.ts';

/** Far above need: a busy machine is no failure. */
export const PATIENCE_MS = 60_000;
export const PHONE = { width: 390, height: 844 };
/** The narrowest one that people have. */
export const SMALL_PHONE = { width: 320, height: 568 };
export const DESKTOP = { width: 1280, height: 900 };

export interface WindowOptions {
  readonly theme?: 'light' | 'dark';
  readonly size?: { readonly width: number; readonly height: number };
  readonly zone?: string;
}

export interface Window {
  readonly page: Page;
  /** All that the window should not have seen or done. */
  readonly noises: () => Promise<readonly string[]>;
  /** What axe finds wrong for people who cannot see, hear or point: one line each. */
  readonly inaccessible: () => Promise<readonly string[]>;
  /** Until the page has its answers: no request is under way, but for the stream of live events, and no part says that it is busy. */
  readonly settled: () => Promise<void>;
  /** By how many pixels the page is wider than the window. */
  readonly overflow: () => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface TestBrowser {
  readonly version: string;
  /** @param origin the one site that the window may ask */
  readonly open: (origin: string, options?: WindowOptions) => Promise<Window>;
  readonly stop: () => Promise<void>;
}

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Runs in the page before anything of the page does. */
const WATCH = `
  globalThis.refused = [];
  document.addEventListener('securitypolicyviolation', (event) => {
    globalThis.refused.push(event.effectiveDirective + ' ' + event.blockedURI + ' ' + event.sample);
  });
`;

const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
/** A page asks for more when it has drawn an answer. Says whether it waits for one. */
const FRAME = `new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  .then(() => document.querySelector('[aria-busy="true"]') !== null)`;
const CALM_FRAMES = 5;
const FRAMES_MAX = 5000;
const AXE = "axe.run({ resultTypes: ['violations'] })";

/** Files that share a process share a browser: to start one takes seconds. It ends with the process. */
const SHARED = Symbol.for('duestream.test.browser');
const shared = globalThis as { [SHARED]?: Promise<Launched> };

interface Launched {
  readonly browser: Browser;
  readonly version: string;
}

/** Windows of it that are open when it is stopped are closed. */
export async function startBrowser(): Promise<TestBrowser> {
  shared[SHARED] ??= launch();
  const { browser, version } = await shared[SHARED];
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const windows = new Set<Window>();
  return {
    version,
    async open(origin, options = {}) {
      const window = await openWindow(browser, { origin, axe, options });
      windows.add(window);
      return window;
    },
    async stop() {
      await Promise.all([...windows].map((window) => window.close()));
    },
  };
}

async function launch(): Promise<Launched> {
  const { path, env, version } = await testChromium();
  const browser = await chromium.launch({
    executablePath: path,
    // It sees our own pages alone, and in a container the sandbox of Chromium cannot be had.
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage'],
    env: { ...definedOf(process.env), ...env },
    timeout: PATIENCE_MS,
  });
  // Whoever finds that it has died starts another one.
  browser.on('disconnected', () => delete shared[SHARED]);
  return { browser, version };
}

interface Opening {
  readonly origin: string;
  readonly axe: string;
  readonly options: WindowOptions;
}

async function openWindow(browser: Browser, { origin, axe, options }: Opening): Promise<Window> {
  const context = await browser.newContext(contextOf(options));
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(WATCH);
  await context.addInitScript(axe);
  const page = await context.newPage();
  const seen = watch(page, origin);
  const asked = fetches(page);
  return {
    page,
    async noises() {
      const refused = await page.evaluate<readonly string[]>('globalThis.refused');
      const isCanary = await page.evaluate<boolean>('globalThis.canary !== undefined');
      const ofPolicy = refused.map((what) => `refused by the policy: ${what}`);
      return [...seen, ...ofPolicy, ...(isCanary ? ['a canary ran'] : [])];
    },
    inaccessible: () => inaccessible(page),
    async settled() {
      for (let calm = 0, frames = 0; calm < CALM_FRAMES; frames += 1) {
        if (frames > FRAMES_MAX) throw new Error(`no answer: ${[...asked].map((one) => one.url()).join(', ')}`);
        const isBusy = await page.evaluate<boolean>(FRAME);
        calm = asked.size === 0 && !isBusy ? calm + 1 : 0;
      }
    },
    overflow: () => page.evaluate<number>(OVERFLOW),
    close: () => context.close(),
  };
}

const contextOf = ({ theme = 'light', size = DESKTOP, zone = 'Europe/Berlin' }: WindowOptions) =>
  ({
    viewport: size,
    colorScheme: theme,
    timezoneId: zone,
    locale: 'en-GB',
    reducedMotion: 'reduce',
    serviceWorkers: 'block',
  }) satisfies BrowserContextOptions;

/** A refusal of the API is no fault of the page: the browser notes each answer from 400 on its console. */
const ANSWERED = /^Failed to load resource: the server responded with a status of/;

function watch(page: Page, origin: string): readonly string[] {
  const seen: string[] = [];
  page.on('dialog', (dialog) => {
    seen.push(`dialog: ${dialog.message()}`);
    // A window that closes meanwhile has closed its dialog, too.
    dialog.dismiss().catch(() => undefined);
  });
  page.on('pageerror', (error) => seen.push(`error: ${error.message}`));
  page.on('console', (message) => {
    const isBad = message.type() === 'error' || message.type() === 'warning';
    if (isBad && !ANSWERED.test(message.text())) seen.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) seen.push(`request to another site: ${url}`);
  });
  return seen;
}

/** The requests of scripts that have no answer yet. */
function fetches(page: Page): ReadonlySet<Request> {
  const asked = new Set<Request>();
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') asked.add(request);
  });
  page.on('requestfinished', (request) => asked.delete(request));
  page.on('requestfailed', (request) => asked.delete(request));
  return asked;
}

async function inaccessible(page: Page): Promise<readonly string[]> {
  const { violations } = await page.evaluate<{ readonly violations: readonly Finding[] }>(AXE);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id} (${help}): ${html.slice(0, 200)} ${failureSummary}`),
  );
}

const definedOf = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
