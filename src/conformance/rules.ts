/**
 * What a client for workers over HTTP must do, in one table. The report of `duestream conformance` and the page
 * docs/reference/client-rules.md follow from it.
 */
export interface ClientRule {
  /** For those who write a client. */
  readonly says: string;
  /** What the kit does to see it. */
  readonly tried: string;
  /** What becomes of jobs where a client does not keep to it. */
  readonly else: string;
}

export const clientRules = {
  name: {
    says: 'Make a name of its own in each process: `h-<label>-<32 random hexadecimal digits>`',
    tried: 'the program is killed and started again, and both names are compared',
    else: 'two processes of one name get one job, with one token',
  },
  fork: {
    says: 'Refuse to work in a process that was forked, or make a new name there',
    tried: 'the program forks itself (`DUESTREAM_FORK=1`)',
    else: 'both processes claim under one name',
  },
  number: {
    says: 'Number the claims of each lane 1, 2, 3 …; raise the number only after an answer was read; say `again: true` when a claim is sent once more',
    tried: 'every claim of every trial is read; answers to claims are lost',
    else: 'the jobs of an answer that was lost wait for a whole lease, and count a crash',
  },
  repeat: {
    says: 'Send the same call again until it is answered, to the next daemon each time, after a pause of 50 ms to 5 s; wait as long as `Retry-After` says',
    tried: 'answers are lost, calls get 503 and 429, and a daemon is killed',
    else: 'ends of runs are lost, so jobs run twice; or a daemon that starts is flooded',
  },
  refused: {
    says: 'Stop at any other 4xx',
    tried: 'a claim is answered 409 `superseded`',
    else: 'a worker that nobody wants goes on for ever',
  },
  beat: {
    says: 'Beat every `beatMs` with all runs',
    tried: 'two handlers run for two and a half leases',
    else: 'the job goes to another worker, although this one lives',
  },
  lease: {
    says: 'Where no beat was answered for `leaseMs`, stop the handler and settle nothing',
    tried: 'no call is answered for longer than a lease; the program is frozen (SIGSTOP) for longer than a lease',
    else: 'a handler works on while another worker runs the same job',
  },
  late: {
    says: 'Count a lease from when its call was first sent: where the answer to a claim was read later than half a lease after that, beat first, and run only what is `ok`',
    tried:
      'answers to claims are held for 0.7 of a lease, lost and then held for 0.35 each, and held until another worker has the job',
    else: 'a start that was lost long ago runs beside its heir',
  },
  words: {
    says: 'Stop the handler at `cancel` and `timeout`; settle its end at `cancel`, and nothing at `timeout`',
    tried: 'a job is cancelled while it runs; the time of another one is up',
    else: 'a cancelled job works on',
  },
  once: {
    says: 'At most once (`begin: true`): send `begin` before the handler, run it at `ok` and `already`, and not at any other word; complete it when it has ended',
    tried: 'an answer to `begin` is lost; another one says `gone`',
    else: 'a job that may run once runs twice, or never',
  },
  token: {
    says: 'Hand the `token` on to the handler',
    tried: 'the program prints the token of each start',
    else: 'a store cannot refuse what an older start writes',
  },
  leave: {
    says: 'At a stop settle the ends of runs, but not those of handlers that were stopped; then send `leave`',
    tried:
      'the program gets SIGTERM while it runs a job, and while calls with the end of another one get 503, for 1.5 s more',
    else: 'the job waits for a lease, and counts a crash or a failure',
  },
} as const satisfies Readonly<Record<string, ClientRule>>;

export type RuleName = keyof typeof clientRules;

/** How a program is told what to do: its environment, and the field `do` of the data of a job. */
export const programEnvironment = {
  DUESTREAM_URLS:
    'two URLs of daemons, with a comma between, such as `http://127.0.0.1:7420`: the calls are below `/v1`',
  DUESTREAM_QUEUE: 'the queue',
  DUESTREAM_FORK:
    '`1`: make the worker, fork, and work in both processes. The child prints `refused` where the client refuses. Where the language cannot fork, print `no fork` and end',
} as const;

export const programDeeds = {
  return: 'returns at once',
  fail: 'fails, with the error `on purpose`',
  wait: 'waits until the client tells it to stop, prints `stopped <id>`, and ends as a handler of this client does then',
} as const;

export type Deed = keyof typeof programDeeds;
