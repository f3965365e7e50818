/**
 * The settings of a queue as its page shows and changes them: what each is, and what is allowed.
 * Made by `npm run generate`; edit src/job/queue-settings.ts.
 */

/** One value. */
export interface SettingPart {
  readonly name: string;
  readonly kind: 'limit' | 'count' | 'duration' | 'rate' | 'share' | 'flag' | 'word';
  readonly doc: string;
  readonly allowed: string;
  /** What holds where it is not said. */
  readonly otherwise?: string;
}

export interface SettingRow {
  readonly name: string;
  readonly kind: 'limit' | 'duration' | 'rates' | 'paths' | 'names' | 'target' | 'yes' | 'bounds' | 'perGroup' | 'groups';
  readonly doc: string;
  readonly allowed: string;
  /** The scope that a change needs. */
  readonly scope: 'write' | 'admin';
  readonly parts: readonly SettingPart[];
}

export const settingRows: readonly SettingRow[] = [
  {
    "name": "history",
    "kind": "bounds",
    "doc": "What is kept of jobs that are over",
    "allowed": "true, false, or keep (1s to 365d), max (1 to 10000000), result (true or false) and resultBytesMax (1 to 262144)",
    "scope": "write",
    "parts": [
      {
        "name": "keep",
        "kind": "duration",
        "doc": "keep them for this long",
        "allowed": "1s to 365d",
        "otherwise": "7d"
      },
      {
        "name": "max",
        "kind": "count",
        "doc": "keep at most this many, the latest",
        "allowed": "1 to 10000000",
        "otherwise": "100000"
      },
      {
        "name": "result",
        "kind": "flag",
        "doc": "keep what handlers return",
        "allowed": "true or false",
        "otherwise": "false"
      },
      {
        "name": "resultBytesMax",
        "kind": "count",
        "doc": "results of more bytes of JSON are not kept",
        "allowed": "1 to 262144",
        "otherwise": "16384"
      }
    ]
  },
  {
    "name": "redact",
    "kind": "paths",
    "doc": "Fields of the data that views, messages of errors and the log do not show",
    "allowed": "a list of at most 50 paths of at most 200 characters, such as card.number or items.*.email",
    "scope": "admin",
    "parts": []
  },
  {
    "name": "broadcast",
    "kind": "bounds",
    "doc": "Whether every subscriber gets each job, and how much of what was sent is kept for them",
    "allowed": "true, false, or max (1 to 1000000), bytes (1024 to 1073741824) and age (1s to 7d)",
    "scope": "write",
    "parts": [
      {
        "name": "max",
        "kind": "count",
        "doc": "keep at most this many for subscribers that are behind",
        "allowed": "1 to 1000000",
        "otherwise": "10000"
      },
      {
        "name": "bytes",
        "kind": "count",
        "doc": "keep at most this many bytes of them",
        "allowed": "1024 to 1073741824",
        "otherwise": "16777216"
      },
      {
        "name": "age",
        "kind": "duration",
        "doc": "keep none of them for longer",
        "allowed": "1s to 7d",
        "otherwise": "1h"
      }
    ]
  },
  {
    "name": "target",
    "kind": "target",
    "doc": "The URL that each job calls when it is due, in the place of a worker; daemons with the role dispatcher send the requests",
    "allowed": "a URL such as https://api.example.com/due, or an object with url, hosts, method, secret, headers, contentType, format, timeout, maxAge, retryOn, deadOn, keepAnswer and certificate; false for none",
    "scope": "admin",
    "parts": []
  },
  {
    "name": "maxPending",
    "kind": "limit",
    "doc": "New jobs are refused while this many wait or run",
    "allowed": "1 to 1000000000, or false for no limit",
    "scope": "write",
    "parts": []
  },
  {
    "name": "maxBytes",
    "kind": "limit",
    "doc": "New jobs are refused while their records take this many bytes",
    "allowed": "1024 to 1125899906842624, or false for no limit",
    "scope": "write",
    "parts": []
  },
  {
    "name": "linger",
    "kind": "duration",
    "doc": "How long due jobs may wait for company, so that one pass carries several; where nobody says it, mover.linger counts",
    "allowed": "0 to 1s",
    "scope": "write",
    "parts": []
  },
  {
    "name": "ahead",
    "kind": "duration",
    "doc": "How long before they are due jobs may be handed to workers, which hold each until its time",
    "allowed": "0 to 100ms",
    "scope": "write",
    "parts": []
  },
  {
    "name": "lateness",
    "kind": "bounds",
    "doc": "Which share of the jobs starts within which time after the due time, as a promise that is watched",
    "allowed": "true, false, or within (1ms to 1d), of (0.5 to 0.99999) and over (1d to 90d)",
    "scope": "write",
    "parts": [
      {
        "name": "within",
        "kind": "duration",
        "doc": "a start that is later than this is late",
        "allowed": "1ms to 1d",
        "otherwise": "1s"
      },
      {
        "name": "of",
        "kind": "share",
        "doc": "which share of the jobs starts in time",
        "allowed": "0.5 to 0.99999",
        "otherwise": "0.99"
      },
      {
        "name": "over",
        "kind": "duration",
        "doc": "the time over which jobs are counted",
        "allowed": "1d to 90d",
        "otherwise": "30d"
      }
    ]
  },
  {
    "name": "rate",
    "kind": "rates",
    "doc": "How many jobs may start in a time; the others wait in line",
    "allowed": "a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst }; from 1/d to 100000/s; or false for no rate; or two of them in a list, such as ['10/s', { limit: 500, per: '1h', burst: 50 }], which both hold",
    "scope": "write",
    "parts": []
  },
  {
    "name": "concurrency",
    "kind": "limit",
    "doc": "How many jobs may run at a time, in all workers together; the others wait in line",
    "allowed": "1 to 1000000, or false for no limit",
    "scope": "write",
    "parts": []
  },
  {
    "name": "perGroup",
    "kind": "perGroup",
    "doc": "How many jobs of each group may run at a time, or also how many may start in a time; the others wait in line. With maxPending new jobs of a group are refused while this many wait or run; with order they start one after the other, over retries too",
    "allowed": "1 to 1000, or concurrency (1 to 1000), rate, maxPending (1 to 1000000000), order (strict) and onDead (continue, hold); false for no limit",
    "scope": "write",
    "parts": [
      {
        "name": "concurrency",
        "kind": "limit",
        "doc": "How many jobs of the group may run at a time",
        "allowed": "1 to 1000, or false for no limit"
      },
      {
        "name": "rate",
        "kind": "rate",
        "doc": "How many of its jobs may start in a time",
        "allowed": "a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst }; from 1/d to 100000/s; or false for no rate"
      },
      {
        "name": "maxPending",
        "kind": "limit",
        "doc": "New jobs of the group are refused while this many wait or run",
        "allowed": "1 to 1000000000, or false for no limit"
      },
      {
        "name": "order",
        "kind": "word",
        "doc": "Whether who was let through has its group until it is over, also over retries",
        "allowed": "strict, or false"
      },
      {
        "name": "onDead",
        "kind": "word",
        "doc": "In strict order, whether the group of a dead letter goes on, or is held until that is replayed or removed, or somebody opens the group",
        "allowed": "continue, hold, or false"
      }
    ]
  },
  {
    "name": "groups",
    "kind": "groups",
    "doc": "Limits of single groups that differ from those of all: by name, or by the beginning of names and an asterisk. They replace all of them",
    "allowed": "at most 1000 names, each with concurrency (1 to 1000), rate, maxPending (1 to 1000000000) or weight (1 to 100)",
    "scope": "write",
    "parts": []
  },
  {
    "name": "limits",
    "kind": "names",
    "doc": "Limits that several queues share, by their names; jobs wait in line until all have room",
    "allowed": "at most 2 names of limits: small letters, digits, \".\", \"_\" and \"-\", at most 64, the first a letter or a digit",
    "scope": "write",
    "parts": []
  },
  {
    "name": "fair",
    "kind": "yes",
    "doc": "Groups and priorities start in turns, also without a limit",
    "allowed": "true",
    "scope": "write",
    "parts": []
  },
  {
    "name": "costs",
    "kind": "yes",
    "doc": "A job may cost more than one turn of a rate: so many as its option cost says",
    "allowed": "true",
    "scope": "write",
    "parts": []
  }
];

/** What a group may have of its own. */
export const groupLimits: readonly SettingPart[] = [
  {
    "name": "concurrency",
    "kind": "limit",
    "doc": "How many jobs of the group may run at a time",
    "allowed": "1 to 1000, or false for no limit"
  },
  {
    "name": "rate",
    "kind": "rate",
    "doc": "How many of its jobs may start in a time",
    "allowed": "a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst }; from 1/d to 100000/s; or false for no rate"
  },
  {
    "name": "maxPending",
    "kind": "limit",
    "doc": "New jobs of the group are refused while this many wait or run",
    "allowed": "1 to 1000000000, or false for no limit"
  },
  {
    "name": "weight",
    "kind": "count",
    "doc": "How many turns it has where another group has one",
    "allowed": "1 to 100"
  }
];
