/** What stands around handlers. Without a middleware, a handler is called as it is; no function is made for its jobs. */
import { checkMiddleware } from '../../client/jobs/scheduling.ts';
import type { Job } from '../../job/job.ts';
import type { BatchCall } from './gathering.ts';
import type { HandleMiddleware, Handler, HandlerContext, Middleware } from './handlers.ts';

export interface HandleChain {
  /** The first one is the outermost. @throws DuestreamError `bad-input` */
  readonly use: (middleware: Middleware) => void;
  /** The handler inside of all of them; itself where there is none. */
  readonly around: (handler: Handler<never>) => Handler<never>;
  /** The same for a job that joins a batch, whose handler is called for many. */
  readonly aroundMember: (join: Handler<never>) => Handler<never>;
  /** The handler of a batch. Middleware stands around its jobs. */
  readonly aroundBatch: (call: BatchCall) => BatchCall;
}

export function createHandleChain(): HandleChain {
  const all: HandleMiddleware[] = [];
  let made = new WeakMap<Handler<never>, Handler<never>>();
  return {
    use(middleware) {
      checkMiddleware(middleware);
      if (!middleware.handle) return;
      all.push(middleware.handle);
      made = new WeakMap();
    },
    around(handler) {
      if (all.length === 0) return handler;
      const known = made.get(handler) ?? inside([...all], handler);
      made.set(handler, known);
      return known;
    },
    // Each job has a function of its own: nothing is kept of it.
    aroundMember: (join) => (all.length === 0 ? join : inside([...all], join)),
    aroundBatch: (call) => call,
  };
}

function inside(all: readonly HandleMiddleware[], handler: Handler<never>): Handler<never> {
  const from = (at: number, job: Job<never>, context: HandlerContext): unknown => {
    const middleware = all[at];
    return middleware
      ? through(middleware, { job, context, inner: () => from(at + 1, job, context) })
      : handler(job, context);
  };
  return (job, context) => from(0, job, context);
}

interface Step {
  readonly job: Job<never>;
  readonly context: HandlerContext;
  /** What stands inside of the middleware: the next one, or the handler. */
  readonly inner: () => unknown;
}

/** The end of what stands inside of a middleware, which notes whether the middleware looks at it. */
class Inner extends Promise<unknown> {
  static override get [Symbol.species]() {
    return Promise;
  }

  isSeen = false;

  // It is a promise, and whoever waits for it calls this.
  override then<A = unknown, B = never>(
    fulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isSeen = true;
    return super.then(fulfilled, rejected);
  }
}

const ignored = () => undefined;

/**
 * A start ends when its middleware and its handler have ended. The middleware decides how: what it returns or throws
 * counts. But one that never looked at what `next` returned has not seen a failure of the handler, and then that counts.
 */
async function through(middleware: HandleMiddleware, { job, context, inner }: Step): Promise<unknown> {
  let running: Promise<unknown> | undefined;
  let shown: Inner | undefined;
  const next = (): Promise<unknown> => {
    if (running) return Promise.reject(new Error('a middleware called next twice: a handler runs once per start'));
    running = (async () => inner())();
    const ended = running;
    shown = new Inner((resolve, reject) => void ended.then(resolve, reject));
    // Nothing is left unhandled where nobody looks.
    void Promise.prototype.then.call(shown, undefined, ignored);
    return shown;
  };
  try {
    const value = await middleware(job, context, next);
    await (shown?.isSeen ? running?.catch(ignored) : running);
    return value;
  } catch (thrown) {
    await running?.catch(ignored);
    throw thrown;
  }
}
