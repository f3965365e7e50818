/** What stands around handlers. Without a middleware, a handler is called as it is; no function is made for its jobs. */
import { checkMiddleware } from '../client/middleware.ts';
import type { Job } from '../core/job.ts';
import type { HandleMiddleware, Handler, HandlerContext, Middleware } from './handlers.ts';

export interface HandleChain {
  /** The first one is the outermost. @throws DuestreamError `bad-input` */
  readonly use: (middleware: Middleware) => void;
  /** The handler inside of all of them; itself where there is none. */
  readonly around: (handler: Handler<never>) => Handler<never>;
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
  };
}

function inside(all: readonly HandleMiddleware[], handler: Handler<never>): Handler<never> {
  const from = (at: number, job: Job<never>, context: HandlerContext): unknown => {
    const middleware = all[at];
    if (!middleware) return handler(job, context);
    let isCalled = false;
    return middleware(job, context, async () => {
      if (isCalled) throw new Error('a middleware called next twice: a handler runs once per start');
      isCalled = true;
      return from(at + 1, job, context);
    });
  };
  return (job, context) => from(0, job, context);
}
