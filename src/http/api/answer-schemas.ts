/**
 * What each answer of the HTTP API has, as JSON schema. Made by `npm run generate`; edit answers.ts, or the view of the
 * library that it names.
 */
import type { AnswerSchema, Answers } from './answers.ts';

export const answerSchemas: Readonly<Record<keyof Answers, AnswerSchema>> = {
  "UnreadQueue": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "why": {
        "type": "string",
        "description": "Its error; of a queue with several partitions also which of them it was."
      }
    },
    "required": [
      "queue",
      "why"
    ],
    "description": "A queue that could not be read: its node does not answer, a key of it is damaged, or nobody can read its entry in the registry."
  },
  "Queues": {
    "type": "object",
    "properties": {
      "namespace": {
        "type": "string"
      },
      "queues": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/QueueCounts"
        }
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        }
      }
    },
    "required": [
      "namespace",
      "queues",
      "unread"
    ]
  },
  "QueueCounts": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "partitions": {
        "type": "integer",
        "minimum": 0
      },
      "scheduled": {
        "type": "integer",
        "minimum": 0
      },
      "waiting": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are due and in line: their queue has limits."
      },
      "waitMs": {
        "type": "number",
        "description": "For how long the first of them has waited; 0 when none does."
      },
      "ready": {
        "type": "integer",
        "minimum": 0
      },
      "running": {
        "type": "integer",
        "minimum": 0
      },
      "dead": {
        "type": "integer",
        "minimum": 0
      },
      "paused": {
        "type": "boolean"
      },
      "oldestDueAgeMs": {
        "type": "number",
        "description": "For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits."
      },
      "oldestInLine": {
        "type": "boolean",
        "description": "That job is in line: its queue has limits."
      },
      "quota": {
        "type": "object",
        "properties": {
          "pending": {
            "type": "integer",
            "minimum": 0,
            "description": "Jobs that wait or run."
          },
          "pendingMax": {
            "type": "integer",
            "minimum": 0,
            "description": "0: no limit."
          },
          "bytes": {
            "type": "integer",
            "minimum": 0,
            "description": "Bytes of their records, as the sum that is kept says; 0 without a limit, as nobody counts then."
          },
          "bytesMax": {
            "type": "integer",
            "minimum": 0,
            "description": "0: no limit."
          }
        },
        "required": [
          "pending",
          "pendingMax",
          "bytes",
          "bytesMax"
        ],
        "description": "How much it may hold, and does; left out without limits."
      },
      "limits": {
        "$ref": "#/components/schemas/QueueLimits",
        "description": "How much may run at once; left out: the queue is not gated."
      },
      "workers": {
        "type": "integer",
        "minimum": 0,
        "description": "Living workers that serve it."
      },
      "leaders": {
        "type": "array",
        "items": {
          "type": [
            "string",
            "null"
          ]
        },
        "description": "Per partition: the process that leads it, or null."
      }
    },
    "required": [
      "queue",
      "partitions",
      "scheduled",
      "waiting",
      "waitMs",
      "ready",
      "running",
      "dead",
      "paused",
      "oldestDueAgeMs",
      "oldestInLine",
      "workers",
      "leaders"
    ]
  },
  "QueueLimits": {
    "type": "object",
    "properties": {
      "text": {
        "type": "string",
        "description": "In short: `10/s · 5 at once · 1 per group`."
      },
      "rate": {
        "type": "object",
        "properties": {
          "limit": {
            "type": "integer",
            "minimum": 0
          },
          "perMs": {
            "type": "number"
          },
          "burst": {
            "type": "integer",
            "minimum": 0
          }
        },
        "required": [
          "limit",
          "perMs",
          "burst"
        ]
      },
      "secondRate": {
        "type": "object",
        "properties": {
          "limit": {
            "type": "integer",
            "minimum": 0
          },
          "perMs": {
            "type": "number"
          },
          "burst": {
            "type": "integer",
            "minimum": 0
          }
        },
        "required": [
          "limit",
          "perMs",
          "burst"
        ],
        "description": "Of two rates the second: both hold."
      },
      "concurrency": {
        "type": "integer",
        "minimum": 0
      },
      "perGroup": {
        "type": "integer",
        "minimum": 0
      },
      "fair": {
        "type": "boolean",
        "enum": [
          true
        ]
      },
      "costs": {
        "type": "boolean",
        "enum": [
          true
        ],
        "description": "A job may cost more than one turn of a rate."
      }
    },
    "required": [
      "text"
    ],
    "description": "How much runs at once, of a gated queue."
  },
  "QueueStats": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "partitions": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "partition": {
              "type": "integer",
              "minimum": 0
            },
            "leader": {
              "$ref": "#/components/schemas/Leader"
            },
            "over": {
              "type": "integer",
              "minimum": 0,
              "description": "Jobs whose end is remembered."
            },
            "quota": {
              "type": "object",
              "properties": {
                "pending": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "Jobs that wait or run."
                },
                "pendingMax": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "0: no limit."
                },
                "bytes": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "Bytes of their records, as the sum that is kept says; 0 without a limit, as nobody counts then."
                },
                "bytesMax": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "0: no limit."
                }
              },
              "required": [
                "pending",
                "pendingMax",
                "bytes",
                "bytesMax"
              ],
              "description": "Its share of the limits of the queue, and what is used of it."
            },
            "concurrency": {
              "type": "integer",
              "minimum": 0,
              "description": "Its share of the concurrency of a gated queue; 0: no such limit."
            },
            "counters": {
              "type": "object",
              "additionalProperties": {
                "type": "integer",
                "minimum": 0
              }
            },
            "scheduled": {
              "type": "integer",
              "minimum": 0
            },
            "waiting": {
              "type": "integer",
              "minimum": 0,
              "description": "Jobs that are due and in line: their queue has limits."
            },
            "waitMs": {
              "type": "number",
              "description": "For how long the first of them has waited; 0 when none does."
            },
            "ready": {
              "type": "integer",
              "minimum": 0
            },
            "running": {
              "type": "integer",
              "minimum": 0
            },
            "dead": {
              "type": "integer",
              "minimum": 0
            },
            "paused": {
              "type": "boolean"
            },
            "oldestDueAgeMs": {
              "type": "number",
              "description": "For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits."
            },
            "oldestInLine": {
              "type": "boolean",
              "description": "That job is in line: its queue has limits."
            }
          },
          "required": [
            "partition",
            "over",
            "counters",
            "scheduled",
            "waiting",
            "waitMs",
            "ready",
            "running",
            "dead",
            "paused",
            "oldestDueAgeMs",
            "oldestInLine"
          ]
        }
      },
      "scheduled": {
        "type": "integer",
        "minimum": 0
      },
      "waiting": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are due and in line: their queue has limits."
      },
      "waitMs": {
        "type": "number",
        "description": "For how long the first of them has waited; 0 when none does."
      },
      "ready": {
        "type": "integer",
        "minimum": 0
      },
      "running": {
        "type": "integer",
        "minimum": 0
      },
      "dead": {
        "type": "integer",
        "minimum": 0
      },
      "paused": {
        "type": "boolean"
      },
      "oldestDueAgeMs": {
        "type": "number",
        "description": "For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits."
      },
      "oldestInLine": {
        "type": "boolean",
        "description": "That job is in line: its queue has limits."
      },
      "quota": {
        "type": "object",
        "properties": {
          "pending": {
            "type": "integer",
            "minimum": 0,
            "description": "Jobs that wait or run."
          },
          "pendingMax": {
            "type": "integer",
            "minimum": 0,
            "description": "0: no limit."
          },
          "bytes": {
            "type": "integer",
            "minimum": 0,
            "description": "Bytes of their records, as the sum that is kept says; 0 without a limit, as nobody counts then."
          },
          "bytesMax": {
            "type": "integer",
            "minimum": 0,
            "description": "0: no limit."
          }
        },
        "required": [
          "pending",
          "pendingMax",
          "bytes",
          "bytesMax"
        ],
        "description": "Its share of the limits of the queue, and what is used of it."
      },
      "limits": {
        "$ref": "#/components/schemas/QueueLimits",
        "description": "How much may run at once; left out: the queue is not gated."
      },
      "workers": {
        "type": "integer",
        "minimum": 0,
        "description": "Living workers that serve it."
      },
      "over": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs whose end is remembered."
      },
      "counters": {
        "type": "object",
        "additionalProperties": {
          "type": "integer",
          "minimum": 0
        }
      },
      "lingerMs": {
        "type": "number",
        "description": "How long due jobs wait for company at most; 0: each is on time."
      },
      "pause": {
        "$ref": "#/components/schemas/Pause",
        "description": "Since when, and why."
      },
      "broadcast": {
        "type": "object",
        "properties": {
          "kept": {
            "type": "integer",
            "minimum": 0,
            "description": "Jobs that are kept for subscribers that are behind."
          },
          "max": {
            "type": "integer",
            "minimum": 0,
            "description": "The bounds of what is kept, of all partitions together."
          },
          "bytes": {
            "type": "integer",
            "minimum": 0
          },
          "ageMs": {
            "type": "number"
          },
          "subscribers": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "id": {
                  "type": "string"
                },
                "host": {
                  "type": "string"
                },
                "pid": {
                  "type": "integer",
                  "minimum": 0
                },
                "lag": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "How many jobs were sent that it had not begun at its last heartbeat."
                }
              },
              "required": [
                "id",
                "host",
                "pid",
                "lag"
              ]
            }
          }
        },
        "required": [
          "kept",
          "max",
          "bytes",
          "ageMs",
          "subscribers"
        ],
        "description": "Of a broadcast queue."
      },
      "dueNext": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "fromMs": {
              "type": "number",
              "description": "Ms from now; left out: all that is due by now."
            },
            "toMs": {
              "type": "number",
              "description": "Ms from now; left out: all that comes later."
            },
            "count": {
              "type": "integer",
              "minimum": 0
            }
          },
          "required": [
            "count"
          ]
        }
      },
      "nowMs": {
        "type": "number",
        "description": "When this was so, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "overrides": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/SettingOverride"
        }
      }
    },
    "required": [
      "queue",
      "partitions",
      "scheduled",
      "waiting",
      "waitMs",
      "ready",
      "running",
      "dead",
      "paused",
      "oldestDueAgeMs",
      "oldestInLine",
      "workers",
      "over",
      "counters",
      "lingerMs",
      "dueNext",
      "nowMs",
      "overrides"
    ]
  },
  "SettingOverride": {
    "type": "object",
    "properties": {
      "setting": {
        "type": "string",
        "description": "As it is said; `perGroup` stands for all that is said of each group."
      },
      "group": {
        "type": "string",
        "description": "Where the limits of one group are meant."
      },
      "value": {},
      "code": {
        "description": "What the definition says; left out: nothing."
      },
      "by": {
        "type": "string",
        "description": "The name of a token, or the user of a machine."
      },
      "reason": {
        "type": "string"
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      }
    },
    "required": [
      "setting",
      "by",
      "reason",
      "atMs"
    ],
    "description": "A setting that somebody set by command, above what the definition says."
  },
  "Pause": {
    "type": "object",
    "properties": {
      "sinceMs": {
        "type": "number",
        "description": "When it began, epoch ms; left out when somebody else wrote the field.",
        "example": 1763719000000
      },
      "reason": {
        "type": "string"
      }
    },
    "required": [
      "reason"
    ]
  },
  "Leader": {
    "type": "object",
    "properties": {
      "process": {
        "type": "string",
        "description": "The id of the process."
      },
      "host": {
        "type": "string",
        "description": "Where it runs; left out when it has no heartbeat."
      },
      "pid": {
        "type": "integer",
        "minimum": 0
      },
      "version": {
        "type": "string",
        "description": "Of duestream; left out when it has no heartbeat, or one of a version that does not say it."
      },
      "epoch": {
        "type": "number"
      },
      "sinceMs": {
        "type": "number",
        "description": "Its election: an epoch is a moment.",
        "example": 1763719000000
      },
      "leaseLeftMs": {
        "type": "number"
      },
      "lastPassAgoMs": {
        "type": "number",
        "description": "Its last pass: each prolongs the lease to its full length. Left out when the lease is void."
      }
    },
    "required": [
      "process",
      "epoch",
      "sinceMs",
      "leaseLeftMs"
    ]
  },
  "QueuePaused": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "changed": {
        "type": "boolean"
      },
      "paused": {
        "type": "boolean"
      },
      "pause": {
        "$ref": "#/components/schemas/Pause",
        "description": "The pause that holds, or the one that has ended."
      },
      "running": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that go on to their end."
      }
    },
    "required": [
      "queue",
      "changed",
      "paused"
    ]
  },
  "QueueClosed": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "changed": {
        "type": "boolean"
      },
      "closed": {
        "type": "boolean"
      }
    },
    "required": [
      "queue",
      "changed",
      "closed"
    ]
  },
  "GroupPage": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "groups": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Group"
        }
      },
      "ungrouped": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs in line that have no group."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0,
        "description": "Groups that were looked at."
      },
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      }
    },
    "required": [
      "queue",
      "groups",
      "ungrouped",
      "scanned",
      "nowMs"
    ]
  },
  "Group": {
    "type": "object",
    "properties": {
      "group": {
        "type": "string"
      },
      "running": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs of it that were let through and are not over: they run, or a worker is about to start them."
      },
      "waiting": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs of it that are due and in line."
      },
      "priorities": {
        "type": "object",
        "properties": {
          "high": {
            "type": "integer",
            "minimum": 0
          },
          "normal": {
            "type": "integer",
            "minimum": 0
          },
          "low": {
            "type": "integer",
            "minimum": 0
          }
        },
        "required": [
          "high",
          "normal",
          "low"
        ],
        "description": "The same by priority."
      },
      "waitMs": {
        "type": "number",
        "description": "For how long the first of them has waited, ms; 0 when none does."
      },
      "perGroup": {
        "type": "integer",
        "minimum": 0,
        "description": "How many may run at a time; left out: no such limit."
      },
      "intervalMs": {
        "type": "number",
        "description": "Ms between two starts at its rate; left out: it has no rate."
      },
      "nextTurnMs": {
        "type": "number",
        "description": "When its rate allows the next start, epoch ms; left out: now.",
        "example": 1763719000000
      },
      "weight": {
        "type": "integer",
        "minimum": 0,
        "description": "How many turns it has where another group has one."
      },
      "maxPending": {
        "type": "integer",
        "minimum": 0,
        "description": "How many of its jobs may wait or run; left out: no such limit."
      },
      "pending": {
        "type": "integer",
        "minimum": 0,
        "description": "How many do, of those that were made since there is such a limit; left out without one."
      },
      "closed": {
        "type": "object",
        "properties": {
          "untilMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          },
          "reason": {
            "type": "string",
            "description": "What a handler gave only with the scope `data`."
          }
        },
        "required": [
          "untilMs"
        ],
        "description": "Somebody has closed it until then, and why; left out: it is open."
      },
      "isFull": {
        "type": "boolean",
        "description": "As many run as may."
      }
    },
    "required": [
      "group",
      "running",
      "waiting",
      "priorities",
      "waitMs",
      "weight",
      "isFull"
    ],
    "description": "A group at one moment."
  },
  "GroupReport": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "holders": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Holder"
        },
        "description": "In the order in which they were let through, at most 100 of each partition."
      },
      "keeper": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string"
          },
          "bare": {
            "type": "boolean"
          },
          "deadLetter": {
            "type": "string",
            "description": "It is this dead letter, which holds the group until it is replayed or removed, or somebody opens the group."
          },
          "attempt": {
            "type": "integer",
            "minimum": 0,
            "description": "Its next start, or the one that runs: 1 is the first."
          },
          "owner": {
            "type": "string",
            "description": "The worker that runs it."
          },
          "dueMs": {
            "type": "number",
            "description": "When it is due again, epoch ms; left out: it runs, or waits for a worker.",
            "example": 1763719000000
          }
        },
        "required": [
          "id",
          "bare",
          "attempt"
        ],
        "description": "In strict order, the job that has the group until it is over, or the dead letter that holds it; left out: nobody."
      },
      "nowMs": {
        "type": "number",
        "description": "When this was so, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "group": {
        "type": "string"
      },
      "running": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs of it that were let through and are not over: they run, or a worker is about to start them."
      },
      "waiting": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs of it that are due and in line."
      },
      "priorities": {
        "type": "object",
        "properties": {
          "high": {
            "type": "integer",
            "minimum": 0
          },
          "normal": {
            "type": "integer",
            "minimum": 0
          },
          "low": {
            "type": "integer",
            "minimum": 0
          }
        },
        "required": [
          "high",
          "normal",
          "low"
        ],
        "description": "The same by priority."
      },
      "waitMs": {
        "type": "number",
        "description": "For how long the first of them has waited, ms; 0 when none does."
      },
      "perGroup": {
        "type": "integer",
        "minimum": 0,
        "description": "How many may run at a time; left out: no such limit."
      },
      "intervalMs": {
        "type": "number",
        "description": "Ms between two starts at its rate; left out: it has no rate."
      },
      "nextTurnMs": {
        "type": "number",
        "description": "When its rate allows the next start, epoch ms; left out: now.",
        "example": 1763719000000
      },
      "weight": {
        "type": "integer",
        "minimum": 0,
        "description": "How many turns it has where another group has one."
      },
      "maxPending": {
        "type": "integer",
        "minimum": 0,
        "description": "How many of its jobs may wait or run; left out: no such limit."
      },
      "pending": {
        "type": "integer",
        "minimum": 0,
        "description": "How many do, of those that were made since there is such a limit; left out without one."
      },
      "closed": {
        "type": "object",
        "properties": {
          "untilMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          },
          "reason": {
            "type": "string",
            "description": "What a handler gave only with the scope `data`."
          }
        },
        "required": [
          "untilMs"
        ],
        "description": "Somebody has closed it until then, and why; left out: it is open."
      },
      "isFull": {
        "type": "boolean",
        "description": "As many run as may."
      }
    },
    "required": [
      "queue",
      "holders",
      "nowMs",
      "group",
      "running",
      "waiting",
      "priorities",
      "waitMs",
      "weight",
      "isFull"
    ]
  },
  "Holder": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "bare": {
        "type": "boolean"
      },
      "sinceMs": {
        "type": "number",
        "description": "When it was let through.",
        "example": 1763719000000
      },
      "owner": {
        "type": "string",
        "description": "The worker that runs it; left out: none has started it yet."
      },
      "attempt": {
        "type": "integer",
        "minimum": 0
      },
      "startedMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      }
    },
    "required": [
      "id",
      "bare",
      "sinceMs"
    ],
    "description": "A job that was let through: it has a place of the limits of its queue and of its group."
  },
  "LimitList": {
    "type": "object",
    "properties": {
      "limits": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/LimitView"
        }
      }
    },
    "required": [
      "limits"
    ]
  },
  "LimitView": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "text": {
        "type": "string",
        "description": "`10/s`, `3 at once`."
      },
      "perSecond": {
        "type": "number",
        "description": "Of a rate: how many jobs may start in a second."
      },
      "by": {
        "type": "string",
        "description": "Who said it, and when."
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The queues that name it."
      },
      "lent": {
        "type": "integer",
        "minimum": 0,
        "description": "Of a concurrency: how many places are lent to partitions."
      },
      "partitions": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/LimitUse"
        },
        "description": "Partitions that have places, or asked for some or for turns within the last minute."
      },
      "rate": {
        "anyOf": [
          {
            "type": "string"
          },
          {
            "type": "string"
          },
          {
            "type": "string"
          },
          {
            "type": "string"
          },
          {
            "type": "object",
            "properties": {
              "limit": {
                "type": "integer",
                "minimum": 0,
                "description": "How many."
              },
              "per": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "integer",
                    "minimum": 0
                  }
                ],
                "description": "In which time."
              },
              "burst": {
                "type": "integer",
                "minimum": 0,
                "description": "How many may start at once after a while without any. 1 to 1,000,000, default 1."
              }
            },
            "required": [
              "limit",
              "per"
            ]
          }
        ],
        "description": "How many jobs of all queues together may start in a time: `'10/s'`, or `{ limit, per, burst }`."
      },
      "concurrency": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs of all queues together may run at a time: 1 to 1,000,000."
      }
    },
    "required": [
      "name",
      "text",
      "by",
      "atMs",
      "queues",
      "lent",
      "partitions"
    ],
    "description": "A limit that several queues share, and who has how much of it."
  },
  "LimitUse": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "share": {
        "type": "integer",
        "minimum": 0,
        "description": "Of a concurrency: places that it has, and places that it needs."
      },
      "need": {
        "type": "integer",
        "minimum": 0
      },
      "askedMs": {
        "type": "number",
        "description": "When its leader asked last, and when it was last given a turn of a rate; epoch ms, 0: never."
      },
      "servedMs": {
        "type": "number"
      }
    },
    "required": [
      "queue",
      "partition",
      "share",
      "need",
      "askedMs",
      "servedMs"
    ],
    "description": "What one partition has of a limit."
  },
  "LimitChange": {
    "type": "object",
    "properties": {
      "changed": {
        "type": "boolean"
      },
      "limit": {
        "type": "string"
      }
    },
    "required": [
      "changed",
      "limit"
    ],
    "description": "`changed`: anything is different now."
  },
  "GroupChange": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "changed": {
        "type": "boolean"
      },
      "group": {
        "type": "string"
      }
    },
    "required": [
      "queue",
      "changed",
      "group"
    ],
    "description": "`changed`: anything is different now."
  },
  "ClosedTagsPage": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "tags": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ClosedTag"
        }
      },
      "count": {
        "type": "integer",
        "minimum": 0,
        "description": "How many tags of the queue are closed."
      }
    },
    "required": [
      "queue",
      "tags",
      "count"
    ]
  },
  "ClosedTag": {
    "type": "object",
    "properties": {
      "tag": {
        "type": "string"
      },
      "untilMs": {
        "type": "number",
        "description": "Epoch ms by the clock of Redis. It opens then, or up to a minute later.",
        "example": 1763719000000
      },
      "atMs": {
        "type": "number",
        "description": "When it was closed, in epoch ms by the clock of Redis; left out where nobody has said it.",
        "example": 1763719000000
      },
      "by": {
        "type": "string",
        "description": "Who closed it."
      },
      "reason": {
        "type": "string"
      }
    },
    "required": [
      "tag",
      "untilMs",
      "by",
      "reason"
    ],
    "description": "A tag that is closed."
  },
  "TagClosed": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cancelled": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs with these tags waited and are cancelled."
      },
      "running": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The ids of those that had a start before, at most 100: they were asked to stop, and a `commit` of theirs has no effect."
      },
      "untilMs": {
        "type": "number",
        "description": "Epoch ms by the clock of Redis until which they are all closed: later than asked where they were closed for longer.",
        "example": 1763719000000
      },
      "full": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Tags that are not closed, since as many as may be (`closedMax`) are. Their jobs were cancelled all the same."
      },
      "tag": {
        "type": "string"
      }
    },
    "required": [
      "queue",
      "cancelled",
      "running",
      "untilMs",
      "tag"
    ]
  },
  "TagOpened": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "changed": {
        "type": "boolean"
      },
      "tag": {
        "type": "string"
      }
    },
    "required": [
      "queue",
      "changed",
      "tag"
    ]
  },
  "SetsPage": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "sets": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Set"
        }
      }
    },
    "required": [
      "queue",
      "sets"
    ]
  },
  "Set": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "sealed": {
        "type": "boolean"
      },
      "madeMs": {
        "type": "number",
        "description": "When it began, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "open": {
        "type": "integer",
        "minimum": 0,
        "description": "Members that wait or run."
      },
      "group": {
        "type": "string"
      },
      "callback": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string"
          },
          "name": {
            "type": "string"
          },
          "delayMs": {
            "type": "number"
          }
        },
        "required": [
          "id",
          "delayMs"
        ],
        "description": "The job that is made when the set is sealed and the last member is over."
      },
      "done": {
        "type": "integer",
        "minimum": 0
      },
      "dead": {
        "type": "integer",
        "minimum": 0
      },
      "cancelled": {
        "type": "integer",
        "minimum": 0
      },
      "expired": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "name",
      "sealed",
      "madeMs",
      "open",
      "callback",
      "done",
      "dead",
      "cancelled",
      "expired"
    ],
    "description": "A set whose callback was not made yet: how many of its members are open, and how the others ended."
  },
  "SetMade": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "set": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already",
          "made",
          "over"
        ],
        "description": "`made`: it is new · `already`: it is there with this very callback, perhaps as the reply to the first call was lost · `over`: its callback was made, and lives or its end is remembered: nothing was changed."
      },
      "callback": {
        "type": "string",
        "description": "The id of its callback."
      }
    },
    "required": [
      "queue",
      "set",
      "status",
      "callback"
    ]
  },
  "SetSealed": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "set": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already",
          "over",
          "sealed"
        ],
        "description": "`sealed`: from now on the end of its last member makes the callback, perhaps in this very step · `already` · `over`: the callback was made."
      },
      "callback": {
        "type": "string"
      }
    },
    "required": [
      "queue",
      "set",
      "status",
      "callback"
    ]
  },
  "SetRemoved": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "set": {
        "type": "string"
      },
      "cancelled": {
        "type": "integer",
        "minimum": 0,
        "description": "How many members waited and are cancelled."
      },
      "running": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The ids of members that run, at most 100: they were asked to stop."
      }
    },
    "required": [
      "queue",
      "set",
      "cancelled",
      "running"
    ]
  },
  "QueueMinutes": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "on": {
        "type": "boolean",
        "description": "Whether leaders keep them now: see `http.minutes`."
      },
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "startMs": {
        "type": "number",
        "description": "When the first step began.",
        "example": 1763719000000
      },
      "stepMs": {
        "type": "number"
      },
      "counts": {
        "type": "object",
        "properties": {
          "scheduled": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "dead": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "done": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "cancelled": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "expired": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "deferred": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "promoted": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          },
          "retried": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          }
        },
        "required": [
          "scheduled",
          "dead",
          "done",
          "cancelled",
          "expired",
          "deferred",
          "promoted",
          "retried"
        ]
      },
      "known": {
        "type": "array",
        "items": {
          "type": "boolean"
        },
        "description": "Whether leaders have kept the whole step, in every partition. What happened in a gap is told at its end."
      },
      "total": {
        "type": "object",
        "properties": {
          "promotion": {
            "$ref": "#/components/schemas/SpreadTotal",
            "description": "From the due time to the promotion."
          },
          "start": {
            "$ref": "#/components/schemas/SpreadTotal",
            "description": "From the due time to the start of the handler."
          },
          "run": {
            "$ref": "#/components/schemas/SpreadTotal",
            "description": "How long handlers ran."
          }
        },
        "required": [
          "promotion",
          "start",
          "run"
        ],
        "description": "Over the whole time."
      },
      "promotion": {
        "$ref": "#/components/schemas/SpreadSteps",
        "description": "From the due time to the promotion."
      },
      "start": {
        "$ref": "#/components/schemas/SpreadSteps",
        "description": "From the due time to the start of the handler."
      },
      "run": {
        "$ref": "#/components/schemas/SpreadSteps",
        "description": "How long handlers ran."
      }
    },
    "required": [
      "queue",
      "on",
      "nowMs",
      "startMs",
      "stepMs",
      "counts",
      "known",
      "total",
      "promotion",
      "start",
      "run"
    ]
  },
  "SpreadSteps": {
    "type": "object",
    "properties": {
      "count": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 0
        }
      },
      "p50Ms": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "Half were within this: of many times to within 2 %, of a few to within an eighth. Where version 0.2 has counted, as if the times lay evenly between two of the bounds, and 300,000 means: longer than that. Null: there were none."
      },
      "p99Ms": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "The same of 99 %."
      },
      "maxMs": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "The longest. Null: there were none, or only older versions have counted."
      }
    },
    "required": [
      "count",
      "p50Ms",
      "p99Ms",
      "maxMs"
    ],
    "description": "Times over the steps; null: there were none."
  },
  "SpreadTotal": {
    "type": "object",
    "properties": {
      "boundsMs": {
        "type": "array",
        "items": {
          "type": "number"
        }
      },
      "counts": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 0
        },
        "description": "One more than there are bounds: the last has what is above all."
      },
      "count": {
        "type": "integer",
        "minimum": 0
      },
      "p50Ms": {
        "type": [
          "number",
          "null"
        ],
        "description": "Half were within this: of many times to within 2 %, of a few to within an eighth. Where version 0.2 has counted, as if the times lay evenly between two of the bounds, and 300,000 means: longer than that. Null: there were none."
      },
      "p99Ms": {
        "type": [
          "number",
          "null"
        ],
        "description": "The same of 99 %."
      },
      "maxMs": {
        "type": [
          "number",
          "null"
        ],
        "description": "The longest; null where nobody knows it, because none was counted, or by older versions alone."
      }
    },
    "required": [
      "boundsMs",
      "counts",
      "count",
      "p50Ms",
      "p99Ms",
      "maxMs"
    ]
  },
  "LastHour": {
    "type": "object",
    "properties": {
      "on": {
        "type": "boolean",
        "description": "Whether leaders keep them now, in any queue: see `http.minutes`."
      },
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "queue": {
              "type": "string"
            },
            "promotion": {
              "$ref": "#/components/schemas/SpreadTotal",
              "description": "From the due time to the promotion."
            },
            "start": {
              "$ref": "#/components/schemas/SpreadTotal",
              "description": "From the due time to the start of the handler."
            },
            "run": {
              "$ref": "#/components/schemas/SpreadTotal",
              "description": "How long handlers ran."
            }
          },
          "required": [
            "queue",
            "promotion",
            "start",
            "run"
          ]
        },
        "description": "By name."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues that did not answer, each with the reason."
      },
      "promotion": {
        "$ref": "#/components/schemas/SpreadTotal",
        "description": "From the due time to the promotion."
      },
      "start": {
        "$ref": "#/components/schemas/SpreadTotal",
        "description": "From the due time to the start of the handler."
      },
      "run": {
        "$ref": "#/components/schemas/SpreadTotal",
        "description": "How long handlers ran."
      }
    },
    "required": [
      "on",
      "nowMs",
      "queues",
      "unread",
      "promotion",
      "start",
      "run"
    ],
    "description": "The spreads over all queues, and of each."
  },
  "Day": {
    "type": "object",
    "properties": {
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "on": {
        "type": "boolean",
        "description": "Whether leaders count minutes now, in any queue: see `http.minutes`."
      },
      "startMs": {
        "type": "number",
        "description": "When the first hour began.",
        "example": 1763719000000
      },
      "stepMs": {
        "type": "number"
      },
      "queues": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/QueueDay"
        },
        "description": "By name."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues that did not answer, each with the reason."
      },
      "events": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/DayEvent"
        }
      }
    },
    "required": [
      "nowMs",
      "on",
      "startMs",
      "stepMs",
      "queues",
      "unread",
      "events"
    ]
  },
  "QueueDay": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "starts": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 0
        },
        "description": "Starts in each hour."
      },
      "p99Ms": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "How late 99 % of them were at most; null: there were none."
      },
      "maxMs": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "The latest of them; null: there were none, or only older versions have counted."
      },
      "dead": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 0
        },
        "description": "Jobs that died in each hour."
      },
      "inTime": {
        "type": "integer",
        "minimum": 0,
        "description": "Starts in all hours that were late by less than a second."
      },
      "hourP99Ms": {
        "type": [
          "number",
          "null"
        ],
        "description": "How late 99 % of the starts of the last 60 minutes were at most; null: there were none."
      }
    },
    "required": [
      "queue",
      "starts",
      "p99Ms",
      "maxMs",
      "dead",
      "inTime",
      "hourP99Ms"
    ],
    "description": "The last day of a queue, as lists of the same length, the oldest hour first."
  },
  "DayEvent": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "what": {
        "type": "string",
        "enum": [
          "closed",
          "elected",
          "opened",
          "paused",
          "resumed",
          "served",
          "set",
          "unserved"
        ]
      },
      "fromMs": {
        "type": "number",
        "description": "Of `elected`, `served` and `resumed`: since when nobody had led, nobody had served, or it was paused; left out: nobody knows."
      },
      "why": {
        "type": "string",
        "description": "Only with the scope `data`."
      },
      "group": {
        "type": "string",
        "description": "Of a closing: the group that is meant; left out: the queue."
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "by": {
        "type": "string",
        "description": "The name of a token, or the user of a machine; of `elected` and `resigned` the process. Left out: a handler, or nobody knows."
      },
      "untilMs": {
        "type": "number",
        "description": "Of a closing: its end, as it was said.",
        "example": 1763719000000
      },
      "before": {
        "$ref": "#/components/schemas/QueueSettings",
        "description": "Of `set`: the settings that are others now, as they were and as they are."
      },
      "after": {
        "$ref": "#/components/schemas/QueueSettings"
      }
    },
    "required": [
      "queue",
      "what",
      "atMs"
    ],
    "description": "A change of a queue, or the end of a time in which nobody led it."
  },
  "Slo": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "withinMs": {
        "type": "number",
        "description": "A start that is later than this after its due time is late."
      },
      "of": {
        "type": "number",
        "description": "Which share of the jobs is to start in time."
      },
      "overMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "sinceMs": {
        "type": "number",
        "description": "Since when these terms are promised and counted.",
        "example": 1763719000000
      },
      "fromMs": {
        "type": "number",
        "description": "Jobs are counted from here,"
      },
      "toMs": {
        "type": "number",
        "description": "up to here: now, or the end of the month."
      },
      "kept": {
        "type": "boolean"
      },
      "jobs": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that count: starts, expired and standing ones."
      },
      "share": {
        "type": [
          "number",
          "null"
        ],
        "description": "Which share of them started in time; null: there was no job."
      },
      "late": {
        "type": "integer",
        "minimum": 0,
        "description": "Starts that were late, and dead letters of jobs that were too late to start."
      },
      "expired": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that expired without a start."
      },
      "standing": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are due for longer than promised now, and that nobody has started. None of a month that is over."
      },
      "budget": {
        "type": "number",
        "description": "So many jobs may be late, expired or standing: at least 10."
      },
      "left": {
        "type": "number",
        "description": "What is left of it; below 0 the promise is broken."
      },
      "burn": {
        "type": [
          "number",
          "null"
        ],
        "description": "How many times as fast as it may last the budget was used in the last hour; null of a month that is over."
      },
      "alert": {
        "type": [
          "string",
          "null"
        ],
        "enum": [
          "page",
          "ticket"
        ],
        "description": "The alert that rings by `deploy/alerts.yaml`: `page` or `ticket`."
      },
      "worst": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "atMs": {
              "type": "number",
              "description": "When the day of UTC began.",
              "example": 1763719000000
            },
            "jobs": {
              "type": "integer",
              "minimum": 0,
              "description": "Starts that were late, dead letters of jobs that were too late to start, and jobs that expired without a start."
            },
            "share": {
              "type": "number",
              "description": "Which share of the whole budget that is: above 1 the day alone was more than the budget."
            },
            "causes": {
              "type": "array",
              "items": {
                "type": "object",
                "properties": {
                  "cause": {
                    "type": "string",
                    "enum": [
                      "behind",
                      "busy",
                      "clock-set",
                      "closed",
                      "concurrency",
                      "group-full",
                      "line",
                      "linger",
                      "made-late",
                      "no-leader",
                      "no-worker",
                      "paused",
                      "promotion",
                      "ran",
                      "rate",
                      "shared",
                      "unasked",
                      "unproven",
                      "worker"
                    ]
                  },
                  "text": {
                    "type": "string",
                    "description": "In words."
                  },
                  "jobs": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Late starts."
                  }
                },
                "required": [
                  "cause",
                  "text",
                  "jobs"
                ]
              },
              "description": "Late starts by the cause that held each longest, the most first. Workers have told them: empty where none has."
            },
            "held": {
              "type": [
                "object",
                "null"
              ],
              "properties": {
                "by": {
                  "type": "string"
                },
                "what": {
                  "type": "string",
                  "enum": [
                    "closed",
                    "leaderless",
                    "paused",
                    "unserved"
                  ]
                },
                "ms": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "what",
                "ms"
              ],
              "description": "What held the queue longest that day, as its diary tells it; null: nothing is told."
            }
          },
          "required": [
            "atMs",
            "jobs",
            "share",
            "causes",
            "held"
          ]
        },
        "description": "The days that spent most of the budget, five at the most, the one with most jobs first."
      }
    },
    "required": [
      "queue",
      "withinMs",
      "of",
      "overMs",
      "sinceMs",
      "fromMs",
      "toMs",
      "kept",
      "jobs",
      "share",
      "late",
      "expired",
      "standing",
      "budget",
      "left",
      "burn",
      "alert",
      "worst"
    ],
    "description": "The same with the name of its queue."
  },
  "Slos": {
    "type": "object",
    "properties": {
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "queues": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Slo"
        },
        "description": "By name."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues that did not answer, each with the reason."
      }
    },
    "required": [
      "nowMs",
      "queues",
      "unread"
    ],
    "description": "Of all queues that promise anything."
  },
  "WhyNothingMoves": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "moves": {
        "type": "boolean",
        "description": "Jobs move, or will as soon as one is due."
      },
      "reasons": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "code": {
              "type": "string",
              "enum": [
                "busy",
                "empty",
                "lingering",
                "no-leader",
                "no-worker",
                "not-due",
                "paused",
                "ready-capped",
                "redis-full",
                "waiting"
              ]
            },
            "text": {
              "type": "string"
            },
            "advice": {
              "type": "string",
              "description": "What to do about it."
            },
            "partitions": {
              "type": "array",
              "items": {
                "type": "integer",
                "minimum": 0
              },
              "description": "Left out: all of them."
            },
            "heldBy": {
              "type": "string",
              "enum": [
                "group-full",
                "queue-closed",
                "queue-full",
                "rate",
                "shared"
              ],
              "description": "Of `waiting`: the limit that holds the jobs; left out: none, they wait for a worker."
            },
            "nextMs": {
              "type": "number",
              "description": "Of `not-due`: when the next job is due. Of `waiting`: when the rate allows the next start, or when the queue or a group opens.",
              "example": 1763719000000
            }
          },
          "required": [
            "code",
            "text",
            "advice"
          ]
        }
      },
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "lastStart": {
        "$ref": "#/components/schemas/StartEstimate",
        "description": "Of the jobs that wait."
      }
    },
    "required": [
      "queue",
      "moves",
      "reasons",
      "nowMs"
    ]
  },
  "JobsPage": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "states": {
        "type": "array",
        "items": {
          "type": "string",
          "enum": [
            "cancelled",
            "dead",
            "done",
            "expired",
            "ready",
            "running",
            "scheduled",
            "waiting"
          ]
        }
      },
      "jobs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ListedJob"
        }
      },
      "scanned": {
        "type": "integer",
        "minimum": 0,
        "description": "How many places were looked at for them."
      }
    },
    "required": [
      "queue",
      "states",
      "jobs",
      "scanned"
    ]
  },
  "ListedJob": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Left out when its record cannot be read, and once the job is over, but for a dead one and in a queue that keeps a history."
      },
      "attempts": {
        "type": "integer",
        "minimum": 0,
        "description": "How often handlers were started."
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "overMs": {
        "type": "number",
        "description": "When it ended, in epoch ms.",
        "example": 1763719000000
      },
      "bare": {
        "type": "boolean",
        "description": "Whether a foreign producer put it with a plain ZADD."
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "state": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired",
          "ready",
          "running",
          "scheduled",
          "waiting"
        ]
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms of the next start; left out when it is over. Of a job that is ready or runs `list` knows it, `get` does not. Where a job that runs was started before this time, its worker holds it until then, and its handler has not begun.",
        "example": 1763719000000
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Left out where nobody knows them any more."
      },
      "owner": {
        "type": "string",
        "description": "The worker that runs it, or had it last."
      },
      "startedMs": {
        "type": "number",
        "description": "Its last start, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "tookMs": {
        "type": "number",
        "description": "How long its last handler ran, once it is over in a queue that keeps a history."
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "error": {
        "type": "string",
        "description": "What its last failed run said, or why it is dead; with the scope `data`."
      },
      "preview": {
        "type": "string",
        "description": "The beginning of its data as JSON, where `preview` asks for it; with the scope `data`."
      },
      "etag": {
        "type": "string",
        "description": "For `ifMatch` of another due time, as long as it is not over; with the scope `write`."
      }
    },
    "required": [
      "id",
      "attempts",
      "crashes",
      "bare",
      "partition",
      "state",
      "failures"
    ]
  },
  "FoundJobs": {
    "type": "object",
    "properties": {
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "jobs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/FoundJob"
        }
      },
      "scanned": {
        "type": "integer",
        "minimum": 0,
        "description": "How many places were looked at for them."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        }
      }
    },
    "required": [
      "jobs",
      "scanned",
      "unread"
    ]
  },
  "FoundJob": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Left out when its record cannot be read, and once the job is over, but for a dead one and in a queue that keeps a history."
      },
      "attempts": {
        "type": "integer",
        "minimum": 0,
        "description": "How often handlers were started."
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "overMs": {
        "type": "number",
        "description": "When it ended, in epoch ms.",
        "example": 1763719000000
      },
      "bare": {
        "type": "boolean",
        "description": "Whether a foreign producer put it with a plain ZADD."
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "state": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired",
          "ready",
          "running",
          "scheduled",
          "waiting"
        ]
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms of the next start; left out when it is over. Of a job that is ready or runs `list` knows it, `get` does not. Where a job that runs was started before this time, its worker holds it until then, and its handler has not begun.",
        "example": 1763719000000
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Left out where nobody knows them any more."
      },
      "owner": {
        "type": "string",
        "description": "The worker that runs it, or had it last."
      },
      "startedMs": {
        "type": "number",
        "description": "Its last start, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "tookMs": {
        "type": "number",
        "description": "How long its last handler ran, once it is over in a queue that keeps a history."
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "error": {
        "type": "string",
        "description": "What its last failed run said, or why it is dead; with the scope `data`."
      },
      "preview": {
        "type": "string",
        "description": "The beginning of its data as JSON, where `preview` asks for it; with the scope `data`."
      },
      "etag": {
        "type": "string",
        "description": "For `ifMatch` of another due time, as long as it is not over; with the scope `write`."
      }
    },
    "required": [
      "id",
      "queue",
      "attempts",
      "crashes",
      "bare",
      "partition",
      "state",
      "failures"
    ]
  },
  "JobCount": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "count": {
        "type": "integer",
        "minimum": 0
      },
      "atLeast": {
        "type": "boolean",
        "description": "There may be more: jobs moved while they were counted. False: so many there were at one moment in each partition."
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "queue",
      "count",
      "atLeast",
      "scanned"
    ]
  },
  "JobEnd": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired",
          "timeout",
          "unknown"
        ],
        "description": "`unknown`: nothing is known of it any more. `timeout`: the time is up, and it is not over."
      },
      "overMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "token": {
        "type": "string",
        "description": "The number of its last start; left out for a job that was never started."
      },
      "reason": {
        "type": "string",
        "description": "What a handler gave only with the scope `data`."
      }
    },
    "required": [
      "id",
      "status"
    ],
    "description": "What `end` says. The look at the job says more, also what its handler returned."
  },
  "Job": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Left out when its record cannot be read, and once the job is over, but for a dead one and in a queue that keeps a history."
      },
      "nowMs": {
        "type": "number",
        "description": "When this was so, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "data": {
        "description": "Left out once the job is over, and when its record cannot be read. Of a dead job its dead letter has them. Only with the scope `data`."
      },
      "headers": {
        "type": "object",
        "additionalProperties": {
          "type": "string"
        },
        "description": "Texts beside the data; left out as `data` is, and where there are none. Only with the scope `data`."
      },
      "unreadable": {
        "type": "string",
        "description": "The beginning of a record that cannot be read. Only with the scope `data`."
      },
      "log": {
        "$ref": "#/components/schemas/JobLog",
        "description": "What its handlers said by `context.log`, as long as the job, its end or its dead letter is kept. Left out: nothing. Only with the scope `data`."
      },
      "reason": {
        "type": "string",
        "description": "Why it is dead, as long as its dead letter is there. What a handler gave only with the scope `data`."
      },
      "history": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Attempted"
        },
        "description": "The last failures, oldest first, at most 5."
      },
      "result": {
        "$ref": "#/components/schemas/KeptResult",
        "description": "What became of what its last handler returned, once it is over in a queue that keeps a history."
      },
      "attempts": {
        "type": "integer",
        "minimum": 0,
        "description": "How often handlers were started."
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "overMs": {
        "type": "number",
        "description": "When it ended, in epoch ms.",
        "example": 1763719000000
      },
      "bare": {
        "type": "boolean",
        "description": "Whether a foreign producer put it with a plain ZADD."
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "state": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired",
          "ready",
          "running",
          "scheduled",
          "waiting"
        ]
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms of the next start; left out when it is over. Of a job that is ready or runs `list` knows it, `get` does not. Where a job that runs was started before this time, its worker holds it until then, and its handler has not begun.",
        "example": 1763719000000
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Left out where nobody knows them any more."
      },
      "owner": {
        "type": "string",
        "description": "The worker that runs it, or had it last."
      },
      "startedMs": {
        "type": "number",
        "description": "Its last start, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "tookMs": {
        "type": "number",
        "description": "How long its last handler ran, once it is over in a queue that keeps a history."
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "token": {
        "type": "string",
        "description": "The number of its last start."
      },
      "entry": {
        "type": "string",
        "description": "The id of its entry in the stream of its partition, while it runs."
      },
      "account": {
        "$ref": "#/components/schemas/StartAccount",
        "description": "Why its last start was when it was: while it runs, and once it is over in a queue that keeps a history."
      },
      "past": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/PastJob"
        },
        "description": "How it ended, if its queue keeps a history; the ends of earlier lives of its id follow. Empty while it lives its first."
      },
      "timeline": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Moment"
        },
        "description": "What is known of it in the order of time, with what comes next."
      },
      "codec": {
        "type": "string",
        "description": "The codec that encoded the data, which is shown as it is stored: a text that only handlers get decoded."
      },
      "options": {
        "type": "object",
        "properties": {
          "timeoutMs": {
            "type": "number"
          },
          "target": {
            "type": "object",
            "properties": {
              "url": {
                "type": "string",
                "description": "A path such as `/orders/7`, where the queue goes otherwise; or a URL on one of the `hosts` of the queue."
              },
              "method": {
                "type": "string",
                "enum": [
                  "DELETE",
                  "GET",
                  "HEAD",
                  "PATCH",
                  "POST",
                  "PUT"
                ]
              },
              "headers": {
                "type": "object",
                "additionalProperties": {
                  "type": "string"
                },
                "description": "Beside those of the queue, and in their place. Only with the scope `data`."
              },
              "contentType": {
                "type": "string"
              }
            }
          },
          "attempts": {
            "type": "integer",
            "minimum": 0
          },
          "backoff": {
            "type": "object",
            "properties": {
              "kind": {
                "type": "string",
                "enum": [
                  "exponential",
                  "fixed",
                  "ladder",
                  "linear"
                ]
              },
              "delayMs": {
                "type": "number"
              },
              "jitter": {
                "type": "string",
                "enum": [
                  "equal",
                  "full",
                  "none"
                ]
              },
              "maxMs": {
                "type": "number"
              },
              "factor": {
                "type": "number"
              },
              "stepsMs": {
                "type": "array",
                "items": {
                  "type": "number"
                }
              }
            },
            "required": [
              "kind",
              "jitter"
            ]
          },
          "set": {
            "type": "string"
          },
          "tags": {
            "type": "array",
            "items": {
              "type": "string"
            }
          },
          "priority": {
            "type": "string",
            "enum": [
              "high",
              "low",
              "normal"
            ]
          },
          "onLate": {
            "type": "string",
            "enum": [
              "dead",
              "drop",
              "run"
            ]
          },
          "cost": {
            "type": "integer",
            "minimum": 0
          },
          "expiresAtMs": {
            "type": "number"
          },
          "maxLatenessMs": {
            "type": "number"
          }
        },
        "description": "What this one job was told, if that differs from its queue's: attempts, times in ms, and the rest. Empty once it is over and not dead."
      },
      "askedDueMs": {
        "type": "number",
        "description": "The due time that the producer asked for, in epoch ms.",
        "example": 1763719000000
      },
      "generation": {
        "type": "integer",
        "minimum": 0,
        "description": "Grows when the job is replaced or replayed."
      },
      "cancelRequested": {
        "type": "boolean"
      },
      "nextLifeMs": {
        "type": "number",
        "description": "Newer data of a debounced job came while it runs. They are its `data`, and start at this time, or when the run has ended if that is later: epoch ms.",
        "example": 1763719000000
      },
      "deferred": {
        "$ref": "#/components/schemas/Deferred",
        "description": "How often its handler put it aside, and why it did the last time."
      },
      "progress": {
        "$ref": "#/components/schemas/JobProgress",
        "description": "How far its handler says that it is, while it runs."
      },
      "deadLetter": {
        "type": "string",
        "description": "The address of its dead letter, to show or replay it, as long as that is there. What `list` finds in a history may be gone by now."
      },
      "readable": {
        "type": "boolean",
        "description": "False when there should be a record and it is missing or cannot be read: the job will become a dead letter."
      },
      "hidden": {
        "type": "boolean",
        "description": "Data, headers and what handlers said are left out, because the token has not the scope `data`."
      },
      "waitsFor": {
        "$ref": "#/components/schemas/JobWait"
      },
      "starts": {
        "$ref": "#/components/schemas/StartEstimate",
        "description": "Of a job that waits for its turn: when it is going to start, or why nobody can tell."
      },
      "digest": {
        "type": "string",
        "description": "Of its content; with the scope `data` or `write`."
      },
      "etag": {
        "type": "string",
        "description": "The `ETag` without its quotes, as long as it is not over; with the scope `data` or `write`."
      }
    },
    "required": [
      "id",
      "queue",
      "nowMs",
      "history",
      "attempts",
      "crashes",
      "bare",
      "partition",
      "state",
      "failures",
      "past",
      "timeline",
      "options",
      "generation",
      "cancelRequested",
      "readable",
      "hidden"
    ]
  },
  "Attempted": {
    "type": "object",
    "properties": {
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "attempt": {
        "type": "integer",
        "minimum": 0
      },
      "kind": {
        "type": "string",
        "enum": [
          "crash",
          "failure",
          "refused",
          "timeout"
        ]
      },
      "message": {
        "type": "string",
        "description": "Only with the scope `data`."
      },
      "stack": {
        "type": "string",
        "description": "Where it was thrown, and where its causes were: frames without those of Node and of duestream, at most 2,000 characters. Of the last failure, in queues that keep a history of each; not while Redis is at its memory limit. Only with the scope `data`."
      },
      "worker": {
        "type": "string",
        "description": "Which worker ran this attempt, and for how long. Not for a crash, whose worker could not say, nor for what never ran."
      },
      "tookMs": {
        "type": "number"
      },
      "account": {
        "$ref": "#/components/schemas/StartAccount",
        "description": "Why it started when it did. Not for a crash."
      },
      "beganMs": {
        "type": "number",
        "description": "Of a crash: when its worker began, and when Redis last heard of that worker, in epoch ms by the clock of Redis."
      },
      "signMs": {
        "type": "number"
      }
    },
    "required": [
      "atMs",
      "attempt",
      "kind"
    ],
    "description": "One line of a job's history: when, at which attempt, what kind of end, and its message."
  },
  "StartAccount": {
    "type": "object",
    "properties": {
      "dueMs": {
        "type": "number",
        "description": "Epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "startedMs": {
        "type": "number",
        "description": "When Redis started it. Before `dueMs`: its worker held it until it was due.",
        "example": 1763719000000
      },
      "lateMs": {
        "type": "number",
        "description": "From the due time to the start; 0: it was on time."
      },
      "parts": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "cause": {
              "type": "string",
              "enum": [
                "behind",
                "busy",
                "clock-set",
                "closed",
                "concurrency",
                "group-full",
                "line",
                "linger",
                "made-late",
                "no-leader",
                "no-worker",
                "paused",
                "promotion",
                "ran",
                "rate",
                "shared",
                "unasked",
                "unproven",
                "worker"
              ]
            },
            "ms": {
              "type": "integer",
              "minimum": 0
            },
            "about": {
              "type": "boolean",
              "enum": [
                true
              ],
              "description": "The cause is told by clocks that are read ten times a second: of these parts only the sum is exact."
            }
          },
          "required": [
            "cause",
            "ms"
          ]
        },
        "description": "In the order of time; where they would be more than 12, one for each cause. They add up to `lateMs`."
      },
      "toHandlerMs": {
        "type": "number",
        "description": "From the start, or from the due time if that is later, until its handler began, as its worker knows it. It is no part of `lateMs`."
      },
      "others": {
        "type": "object",
        "properties": {
          "count": {
            "type": "integer",
            "minimum": 0
          },
          "isLeast": {
            "type": "boolean",
            "description": "There were more of them."
          },
          "ofGroup": {
            "type": "boolean",
            "description": "They are of its group; else of any, because it has none."
          },
          "last": {
            "type": "string",
            "description": "The id of the one that ended last."
          }
        },
        "required": [
          "count",
          "isLeast",
          "ofGroup",
          "last"
        ],
        "description": "Of a job that was in line for a second or more: who had a turn meanwhile, as far as that is remembered."
      }
    },
    "required": [
      "dueMs",
      "startedMs",
      "lateMs",
      "parts"
    ],
    "description": "Why a job started when it did."
  },
  "Deferred": {
    "type": "object",
    "properties": {
      "times": {
        "type": "integer",
        "minimum": 0,
        "description": "0: only workers handed it back."
      },
      "lastMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "reason": {
        "type": "string",
        "description": "What a handler gave only with the scope `data`."
      },
      "starts": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "kind": {
              "type": "string",
              "enum": [
                "deferred",
                "handed-back"
              ]
            },
            "attempt": {
              "type": "integer",
              "minimum": 0,
              "description": "Left out where a version before this one has written it."
            },
            "atMs": {
              "type": "number",
              "description": "Milliseconds since 1970 in UTC.",
              "example": 1763719000000
            },
            "reason": {
              "type": "string",
              "description": "What a handler gave only with the scope `data`."
            },
            "worker": {
              "type": "string",
              "description": "Which worker ran the attempt, and for how long."
            },
            "tookMs": {
              "type": "number"
            }
          },
          "required": [
            "kind",
            "atMs"
          ]
        },
        "description": "The last starts that were put aside or handed back, the oldest first, at most 5."
      }
    },
    "required": [
      "times",
      "lastMs",
      "starts"
    ],
    "description": "How often the handler of a job put it aside, and why it did the last time."
  },
  "JobProgress": {
    "type": "object",
    "properties": {
      "fraction": {
        "type": "number",
        "description": "From 0 to 1."
      },
      "text": {
        "type": "string"
      },
      "atMs": {
        "type": "number",
        "description": "When it said so, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      }
    },
    "required": [
      "fraction",
      "atMs"
    ],
    "description": "How far the handler of a job said that it is."
  },
  "JobLog": {
    "type": "object",
    "properties": {
      "lines": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/LogLine"
        },
        "description": "The oldest first."
      },
      "leftOut": {
        "type": "integer",
        "minimum": 0,
        "description": "How many lines are not kept: they were too many, or Redis was full."
      }
    },
    "required": [
      "lines",
      "leftOut"
    ],
    "description": "What the handlers of a job said."
  },
  "LogLine": {
    "type": "object",
    "properties": {
      "atMs": {
        "type": "number",
        "description": "When it said so, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "attempt": {
        "type": "integer",
        "minimum": 0
      },
      "text": {
        "type": "string"
      },
      "fields": {
        "type": "object",
        "additionalProperties": {},
        "description": "Left out where it gave none."
      }
    },
    "required": [
      "atMs",
      "attempt",
      "text"
    ],
    "description": "One line that a handler said of its job."
  },
  "Moment": {
    "type": "object",
    "properties": {
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "kind": {
        "type": "string",
        "enum": [
          "asked-due",
          "cancelled",
          "crash",
          "dead",
          "deferred",
          "done",
          "due",
          "earlier-end",
          "expired",
          "failure",
          "handed-back",
          "refused",
          "started",
          "timeout"
        ],
        "description": "A kind of failure, a state in which the job ended, or one of the others. `due` is its next start."
      },
      "attempt": {
        "type": "integer",
        "minimum": 0
      },
      "owner": {
        "type": "string"
      },
      "tookMs": {
        "type": "number"
      },
      "outcome": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ],
        "description": "Of an earlier end: how that life of the id ended."
      },
      "message": {
        "type": "string",
        "description": "Only with the scope `data`."
      },
      "stack": {
        "type": "string",
        "description": "Only with the scope `data`."
      },
      "account": {
        "$ref": "#/components/schemas/StartAccount",
        "description": "Of a start: why it was when it was."
      }
    },
    "required": [
      "atMs",
      "kind"
    ],
    "description": "One thing that happened to a job, or is going to."
  },
  "KeptResult": {
    "type": "object",
    "properties": {
      "kind": {
        "type": "string",
        "enum": [
          "kept",
          "no-json",
          "none",
          "too-large"
        ]
      },
      "bytes": {
        "type": "integer",
        "minimum": 0
      },
      "why": {
        "type": "string",
        "description": "Only with the scope `data`."
      },
      "value": {
        "description": "Only with the scope `data`."
      }
    },
    "required": [
      "kind"
    ]
  },
  "PastJob": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Left out where nobody could read it."
      },
      "bare": {
        "type": "boolean"
      },
      "outcome": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ]
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "set": {
        "type": "string",
        "description": "The set that it was a member of."
      },
      "askedDueMs": {
        "type": "number",
        "description": "The due time that the producer asked for, in epoch ms.",
        "example": 1763719000000
      },
      "attempts": {
        "type": "integer",
        "minimum": 0
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "generation": {
        "type": "integer",
        "minimum": 0
      },
      "token": {
        "type": "string",
        "description": "The number of its last start; left out for a job that was never started."
      },
      "owner": {
        "type": "string",
        "description": "The worker that had it last."
      },
      "startedMs": {
        "type": "number",
        "description": "When its last handler began, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "tookMs": {
        "type": "number"
      },
      "account": {
        "$ref": "#/components/schemas/StartAccount",
        "description": "Why its last start was when it was."
      },
      "overMs": {
        "type": "number",
        "description": "When it ended, in epoch ms.",
        "example": 1763719000000
      },
      "history": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Attempted"
        },
        "description": "The errors of its starts, oldest first, at most 5, each with its stack."
      },
      "deferred": {
        "$ref": "#/components/schemas/Deferred"
      },
      "result": {
        "$ref": "#/components/schemas/KeptResult"
      },
      "deadLetter": {
        "type": "string",
        "description": "The address of its dead letter, which may be gone by now."
      }
    },
    "required": [
      "id",
      "bare",
      "outcome",
      "tags",
      "askedDueMs",
      "attempts",
      "failures",
      "crashes",
      "generation",
      "overMs",
      "history",
      "result"
    ],
    "description": "How a job ended."
  },
  "JobWait": {
    "type": "object",
    "properties": {
      "obstacles": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "kind": {
              "type": "string",
              "enum": [
                "group-closed",
                "group-full",
                "group-kept",
                "group-rate",
                "no-worker",
                "paused",
                "queue-closed",
                "queue-full",
                "rate",
                "shared"
              ],
              "description": "As many run as the concurrency of the queue, or the limit of the group, allows. In strict order, another job has the group until it is over, or a dead letter holds it. The rate of the queue, or of the group. Limits that its queue shares with others have no turn or no place in its partition now. Somebody has closed the queue, or the group."
            },
            "sinceMs": {
              "type": "number",
              "description": "Epoch ms; left out: nobody knows.",
              "example": 1763719000000
            },
            "reason": {
              "type": "string",
              "description": "What a handler gave only with the scope `data`."
            },
            "text": {
              "type": "string"
            },
            "limit": {
              "type": "integer",
              "minimum": 0
            },
            "running": {
              "type": "integer",
              "minimum": 0
            },
            "holders": {
              "type": "array",
              "items": {
                "$ref": "#/components/schemas/Holder"
              },
              "description": "Who holds it, longest first, at most 10."
            },
            "keeper": {
              "type": "object",
              "properties": {
                "id": {
                  "type": "string"
                },
                "bare": {
                  "type": "boolean"
                },
                "deadLetter": {
                  "type": "string",
                  "description": "It is this dead letter, which holds the group until it is replayed or removed, or somebody opens the group."
                },
                "attempt": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "Its next start, or the one that runs: 1 is the first."
                },
                "owner": {
                  "type": "string",
                  "description": "The worker that runs it."
                },
                "dueMs": {
                  "type": "number",
                  "description": "When it is due again, epoch ms; left out: it runs, or waits for a worker.",
                  "example": 1763719000000
                }
              },
              "required": [
                "id",
                "bare",
                "attempt"
              ]
            },
            "untilMs": {
              "type": "number",
              "description": "When the rate allows the next start, in epoch ms. In epoch ms.",
              "example": 1763719000000
            },
            "limits": {
              "type": "array",
              "items": {
                "type": "string"
              }
            }
          },
          "required": [
            "kind",
            "text"
          ]
        }
      },
      "text": {
        "type": "string",
        "description": "Where it stands."
      },
      "group": {
        "type": "string",
        "description": "Left out: the job has none, and no limit per group holds it."
      },
      "ahead": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs of its group and priority that have their turns before it."
      },
      "priority": {
        "type": "string",
        "enum": [
          "high",
          "low",
          "normal"
        ]
      }
    },
    "required": [
      "obstacles",
      "text",
      "ahead",
      "priority"
    ],
    "description": "What a job in line waits for, with a sentence for each."
  },
  "StartEstimate": {
    "type": "object",
    "properties": {
      "kind": {
        "type": "string",
        "enum": [
          "about",
          "not-before",
          "untold"
        ],
        "description": "`about`: the job starts about then · `not-before`: something is closed until then · `untold`: nobody can tell"
      },
      "startMs": {
        "type": "number",
        "description": "Epoch ms; the time from now to it has two digits.",
        "example": 1763719000000
      },
      "before": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that start before it; those of its group, where the limits of the group make it wait longest."
      },
      "perSecond": {
        "type": "number",
        "description": "So many of these start in a second, in two digits."
      },
      "pacedBy": {
        "type": "string",
        "enum": [
          "concurrency",
          "group",
          "group-rate",
          "rate",
          "slots"
        ],
        "description": "What makes it wait longest."
      },
      "untold": {
        "type": "string",
        "enum": [
          "costs",
          "few-runs",
          "group-kept",
          "many-lanes",
          "no-leader",
          "no-worker",
          "others-first",
          "paused",
          "shared",
          "slots-unknown",
          "unsteady"
        ],
        "description": "Why nothing is told."
      },
      "text": {
        "type": "string",
        "description": "All of it as a sentence."
      }
    },
    "required": [
      "kind",
      "text"
    ],
    "description": "When a job is going to start."
  },
  "Scheduled": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "queue": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already",
          "behind",
          "closed",
          "exists",
          "kept",
          "merged",
          "overtaken",
          "replaced",
          "running",
          "scheduled",
          "updated"
        ],
        "description": "`scheduled`: the job is new · `updated`: a job that waits has what this call names · `replaced`: it took the place of a job that waited · `exists`: a job of this id lives and was kept; with `update` its record cannot be read, or others changed it each time · `running`: a job of this id runs and was not changed · `already`: the same call (same id, due time and content) was carried out before, for example because its reply was lost. A cancel ends what was scheduled before it: after it the same call makes a new job. With `update`: the job is as this call says, or it is over and stays so · `closed`: a tag of it is closed, and nothing was changed. With `debounce` also `merged`: the job that waits has this data and the later due time · `kept`: the job is due, or waits for another start, and has this data when it starts · `behind`: the job runs, and its next life, with this data, begins when it has ended · `overtaken`: a newer call has come."
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms by the primary's clock from which the job may run; with `exists`, `already`, and each status of `ifExists: 'update'` where a job is there, that of this job. With `behind` the job starts again at the end of its run, or at that time where it is later.",
        "example": 1763719000000
      },
      "over": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ],
        "description": "With `already`: how the job ended, if it is over."
      },
      "closed": {
        "type": "object",
        "properties": {
          "tag": {
            "type": "string"
          },
          "untilMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          }
        },
        "required": [
          "tag",
          "untilMs"
        ],
        "description": "With `closed`: the tag that is closed for the longest, and its end in epoch ms by the clock of Redis."
      }
    },
    "required": [
      "id",
      "queue",
      "status",
      "dueMs"
    ],
    "description": "What became of one job that was scheduled."
  },
  "JobPreview": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms.",
        "example": 1763719000000
      },
      "there": {
        "type": "object",
        "properties": {
          "state": {
            "type": "string",
            "enum": [
              "ready",
              "running",
              "scheduled",
              "waiting"
            ]
          },
          "dueMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          }
        },
        "required": [
          "state"
        ],
        "description": "A job of its id that lives: what becomes of both, `ifExists` says."
      },
      "refusal": {
        "$ref": "#/components/schemas/PreviewRefusal",
        "description": "What would refuse the job now; left out: nothing that is known before."
      },
      "retries": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "attempt": {
              "type": "integer",
              "minimum": 0
            },
            "fromMs": {
              "type": "number"
            },
            "toMs": {
              "type": "number"
            }
          },
          "required": [
            "attempt",
            "fromMs",
            "toMs"
          ]
        },
        "description": "When it would be tried again if each start failed at once: the first 20, each between two times in epoch ms, because of jitter."
      },
      "beside": {
        "type": "object",
        "properties": {
          "fromMs": {
            "type": "number"
          },
          "stepMs": {
            "type": "number"
          },
          "counts": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            }
          }
        },
        "required": [
          "fromMs",
          "stepMs",
          "counts"
        ],
        "description": "Jobs of its queue that wait for a due time around its own, by the minute: 30 before, its own, 30 after."
      }
    },
    "required": [
      "queue",
      "name",
      "dueMs",
      "retries",
      "beside"
    ],
    "description": "What would become of a job that is scheduled now."
  },
  "PreviewRefusal": {
    "type": "object",
    "properties": {
      "kind": {
        "type": "string",
        "enum": [
          "closed",
          "queue-full",
          "unfit"
        ]
      },
      "limit": {
        "type": "integer",
        "minimum": 0
      },
      "pending": {
        "type": "integer",
        "minimum": 0
      },
      "tag": {
        "type": "string"
      },
      "untilMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "why": {
        "type": "string"
      }
    },
    "required": [
      "kind"
    ]
  },
  "ScheduledMany": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "jobs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Scheduled"
        }
      }
    },
    "required": [
      "queue",
      "jobs"
    ]
  },
  "Edited": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already",
          "changed",
          "edited",
          "indeterminate",
          "over",
          "running",
          "unknown",
          "unreadable"
        ],
        "description": "`edited` · `already`: it is what it should become · `changed`: somebody has changed it, it is not what `ifMatch` or `ifDigest` says · `running`, `over`, `unknown`: it does not wait, nothing was changed · `unreadable`: its record cannot be read · `indeterminate`: the reply was lost, and the job has been started, changed or ended since, so nobody knows whether it was edited before."
      },
      "digest": {
        "type": "string",
        "description": "Of what is stored now, with `edited`, `already` and `changed`: for the next edit's `ifDigest`."
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms, with `edited` and `already` of an edit that gives a due time.",
        "example": 1763719000000
      },
      "etag": {
        "type": "string",
        "description": "Of the job after it, with `edited` and `already`: for the next change's `ifMatch`."
      },
      "over": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ]
      }
    },
    "required": [
      "id",
      "status"
    ],
    "description": "What became of a request to edit a job."
  },
  "EditedMany": {
    "anyOf": [
      {
        "type": "object",
        "properties": {
          "queue": {
            "type": "string"
          },
          "jobs": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Edited"
            }
          }
        },
        "required": [
          "queue",
          "jobs"
        ]
      },
      {
        "$ref": "#/components/schemas/ChangedJobs"
      }
    ]
  },
  "Cancelled": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "cancelled",
          "changed",
          "indeterminate",
          "over",
          "requested",
          "unknown"
        ],
        "description": "`cancelled`: it will not run · `requested`: it runs, and its signal aborts soon · `over`: it had ended before, as `over` says · `unknown`: there is no such job, or it ended longer ago than the done window · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the reply was lost, and nothing is known of the job now or it is another one since, so nobody knows whether it was cancelled or never there."
      },
      "over": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ]
      }
    },
    "required": [
      "id",
      "status"
    ],
    "description": "What became of a request to cancel."
  },
  "CancelledMany": {
    "anyOf": [
      {
        "$ref": "#/components/schemas/ChangedJobs"
      },
      {
        "type": "object",
        "properties": {
          "queue": {
            "type": "string"
          },
          "jobs": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Cancelled"
            }
          }
        },
        "required": [
          "queue",
          "jobs"
        ]
      }
    ]
  },
  "Rescheduled": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already",
          "changed",
          "indeterminate",
          "kept",
          "over",
          "ready",
          "rescheduled",
          "running",
          "unknown"
        ],
        "description": "`rescheduled`: due at `dueMs`, and before at `wasMs` · `already`: that was its due time · `kept`: `only` forbids it, and it is due at `dueMs` · `ready`: it is due already and waits for a worker · `running`, `over`, `unknown`: it does not wait, nothing was changed · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the reply was lost, and the job has been started, changed or has ended since, so nobody knows whether it was changed before."
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms, with `rescheduled`, `already` and `kept`.",
        "example": 1763719000000
      },
      "wasMs": {
        "type": "number",
        "description": "Epoch ms, with `rescheduled`; left out for a job that was due and waited for a worker.",
        "example": 1763719000000
      },
      "waitingBehind": {
        "type": "integer",
        "minimum": 0,
        "description": "With `rescheduled` to a later time, in strict order: the job has its group until it is over, and so many in line wait for it."
      },
      "over": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ]
      },
      "etag": {
        "type": "string",
        "description": "Of one job that was asked for, and of each in a list that was given one: of the job after it."
      }
    },
    "required": [
      "id",
      "status"
    ]
  },
  "RescheduledMany": {
    "anyOf": [
      {
        "$ref": "#/components/schemas/ChangedJobs"
      },
      {
        "type": "object",
        "properties": {
          "queue": {
            "type": "string"
          },
          "jobs": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Rescheduled"
            }
          }
        },
        "required": [
          "queue",
          "jobs"
        ]
      }
    ]
  },
  "RanNow": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "already-due",
          "changed",
          "due",
          "indeterminate",
          "over",
          "running",
          "unknown"
        ],
        "description": "`due`: it is due now · `already-due`: it was, and waits for a worker · `running`, `over`, `unknown`: it does not wait, nothing was changed · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the reply was lost, and the job has been started, changed or has ended since."
      },
      "over": {
        "type": "string",
        "enum": [
          "cancelled",
          "dead",
          "done",
          "expired"
        ]
      }
    },
    "required": [
      "id",
      "status"
    ],
    "description": "What became of a request to run a job now."
  },
  "RanNowMany": {
    "anyOf": [
      {
        "$ref": "#/components/schemas/ChangedJobs"
      },
      {
        "type": "object",
        "properties": {
          "queue": {
            "type": "string"
          },
          "jobs": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/RanNow"
            }
          }
        },
        "required": [
          "queue",
          "jobs"
        ]
      }
    ]
  },
  "ChangedJobs": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "dryRun": {
        "type": "boolean"
      },
      "ids": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The first 1000 of the jobs that were changed; of a dry run, that would be looked at."
      },
      "matched": {
        "type": "integer",
        "minimum": 0,
        "description": "How many the filter meant."
      },
      "changed": {
        "type": "integer",
        "minimum": 0,
        "description": "Of those, how many were changed; 0 in a dry run."
      },
      "skipped": {
        "type": "object",
        "properties": {
          "running": {
            "type": "integer",
            "minimum": 0
          },
          "over": {
            "type": "integer",
            "minimum": 0
          },
          "unreadable": {
            "type": "integer",
            "minimum": 0
          },
          "unknown": {
            "type": "integer",
            "minimum": 0
          },
          "refused": {
            "type": "integer",
            "minimum": 0
          },
          "kept": {
            "type": "integer",
            "minimum": 0
          },
          "changed": {
            "type": "integer",
            "minimum": 0
          },
          "already": {
            "type": "integer",
            "minimum": 0
          },
          "already-due": {
            "type": "integer",
            "minimum": 0
          },
          "indeterminate": {
            "type": "integer",
            "minimum": 0
          }
        },
        "description": "Of those, the others, by reason."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0,
        "description": "How many places were looked at."
      },
      "cursor": {
        "type": "string",
        "description": "Where to go on if this is not the end: an option of the same call."
      },
      "requested": {
        "type": "integer",
        "minimum": 0,
        "description": "Of the matched jobs, how many run and were asked to stop: they are not cancelled yet."
      },
      "moves": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/JobMove"
        },
        "description": "The first 1000 of the jobs that were moved; of a dry run, that would be moved."
      }
    },
    "required": [
      "queue",
      "dryRun",
      "ids",
      "matched",
      "changed",
      "skipped",
      "scanned"
    ]
  },
  "JobMove": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "wasMs": {
        "type": "number",
        "description": "Epoch ms; left out: it was due, and waited for a worker.",
        "example": 1763719000000
      },
      "dueMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "etag": {
        "type": "string",
        "description": "Of the job as it is now: before the move in a dry run, else after it. For `ifMatch` of the same move by id, or back."
      }
    },
    "required": [
      "id",
      "dueMs",
      "etag"
    ],
    "description": "A job that a filter means, and its due times: before and after."
  },
  "DeadLettersPage": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "deadLetters": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ListedDeadLetter"
        },
        "description": "Without `group`."
      },
      "groups": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/DeadLetterGroup"
        },
        "description": "With `group`: the largest first."
      },
      "others": {
        "type": "integer",
        "minimum": 0,
        "description": "With `group`: dead letters in none of the groups, which are 1000 at most."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "queue",
      "scanned"
    ]
  },
  "DeadLetterOverview": {
    "type": "object",
    "properties": {
      "stepMs": {
        "type": "number",
        "description": "How long a step of `times` is."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues that could not be looked through, and why."
      },
      "untilMs": {
        "type": "number",
        "description": "Older dead letters than this, in epoch ms, were not looked at; left out: all were.",
        "example": 1763719000000
      },
      "others": {
        "type": "integer",
        "minimum": 0,
        "description": "Dead letters that are in none of the kinds."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0
      },
      "kinds": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/DeadLetterKind"
        }
      }
    },
    "required": [
      "stepMs",
      "unread",
      "others",
      "scanned",
      "kinds"
    ]
  },
  "DeadLetterKind": {
    "type": "object",
    "properties": {
      "count": {
        "type": "integer",
        "minimum": 0
      },
      "times": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "atMs": {
              "type": "number",
              "description": "Milliseconds since 1970 in UTC.",
              "example": 1763719000000
            },
            "count": {
              "type": "integer",
              "minimum": 0
            }
          },
          "required": [
            "atMs",
            "count"
          ]
        }
      },
      "lastMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "firstMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "error": {
        "type": "string"
      },
      "reason": {
        "type": "string"
      },
      "shares": {
        "type": "object",
        "properties": {
          "queue": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            }
          },
          "name": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            },
            "description": "Names of their jobs."
          },
          "host": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            },
            "description": "The hosts of the workers that ran them last; of a worker that is gone, its id."
          },
          "version": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            },
            "description": "The versions of these workers, as far as they live."
          },
          "group": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            }
          },
          "tag": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "value": {
                  "type": "string"
                },
                "count": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "value",
                "count"
              ]
            }
          }
        },
        "required": [
          "queue",
          "name",
          "host",
          "version",
          "group",
          "tag"
        ]
      },
      "example": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string"
          },
          "queue": {
            "type": "string"
          },
          "deadLetter": {
            "type": "string"
          }
        },
        "required": [
          "id",
          "queue",
          "deadLetter"
        ],
        "description": "The newest of them."
      }
    },
    "required": [
      "count",
      "times",
      "lastMs",
      "firstMs",
      "shares",
      "example"
    ]
  },
  "ListedDeadLetter": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "description": "The id of the job."
      },
      "name": {
        "type": "string",
        "description": "Left out when the record cannot be read."
      },
      "deadLetter": {
        "type": "string",
        "description": "Its address."
      },
      "etag": {
        "type": "string",
        "description": "The `ETag` without its quotes."
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "error": {
        "type": "string",
        "description": "The last error without numbers and ids: what `groups` counts by. Only with the scope `data`."
      },
      "reason": {
        "type": "string",
        "description": "Why the job is not tried again: `attempts-exhausted`, `no-handler`, … or the text of an `Unrecoverable`. What a handler gave only with the scope `data`."
      },
      "history": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Attempted"
        },
        "description": "The last failures, oldest first, at most 5."
      },
      "attempts": {
        "type": "integer",
        "minimum": 0,
        "description": "How often handlers were started."
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "bare": {
        "type": "boolean",
        "description": "Whether a foreign producer put the job with a plain ZADD."
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "generation": {
        "type": "integer",
        "minimum": 0
      },
      "deferred": {
        "$ref": "#/components/schemas/Deferred",
        "description": "How often its handler put it aside, and why it did the last time."
      }
    },
    "required": [
      "id",
      "deadLetter",
      "etag",
      "atMs",
      "history",
      "attempts",
      "crashes",
      "bare",
      "partition",
      "tags",
      "failures",
      "generation"
    ]
  },
  "DeadLetter": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "description": "The id of the job."
      },
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Left out when the record cannot be read."
      },
      "deadLetter": {
        "type": "string",
        "description": "Its address."
      },
      "etag": {
        "type": "string",
        "description": "The `ETag` without its quotes."
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "error": {
        "type": "string",
        "description": "The last error without numbers and ids: what `groups` counts by. Only with the scope `data`."
      },
      "reason": {
        "type": "string",
        "description": "Why the job is not tried again: `attempts-exhausted`, `no-handler`, … or the text of an `Unrecoverable`. What a handler gave only with the scope `data`."
      },
      "history": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Attempted"
        },
        "description": "The last failures, oldest first, at most 5."
      },
      "attempts": {
        "type": "integer",
        "minimum": 0,
        "description": "How often handlers were started."
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "bare": {
        "type": "boolean",
        "description": "Whether a foreign producer put the job with a plain ZADD."
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "generation": {
        "type": "integer",
        "minimum": 0
      },
      "deferred": {
        "$ref": "#/components/schemas/Deferred",
        "description": "How often its handler put it aside, and why it did the last time."
      },
      "hidden": {
        "type": "boolean",
        "description": "Data, headers and what handlers said are left out, because the token has not the scope `data`."
      },
      "data": {
        "description": "Only with the scope `data`."
      },
      "headers": {
        "type": "object",
        "additionalProperties": {
          "type": "string"
        },
        "description": "Texts beside the data, if there are any. Only with the scope `data`."
      },
      "log": {
        "$ref": "#/components/schemas/JobLog",
        "description": "What its handlers said by `context.log`. Left out: nothing. Only with the scope `data`."
      },
      "codec": {
        "type": "string",
        "description": "The codec that encoded the data, which is shown as it is stored."
      },
      "options": {
        "type": "object",
        "properties": {
          "timeoutMs": {
            "type": "number"
          },
          "target": {
            "type": "object",
            "properties": {
              "url": {
                "type": "string",
                "description": "A path such as `/orders/7`, where the queue goes otherwise; or a URL on one of the `hosts` of the queue."
              },
              "method": {
                "type": "string",
                "enum": [
                  "DELETE",
                  "GET",
                  "HEAD",
                  "PATCH",
                  "POST",
                  "PUT"
                ]
              },
              "headers": {
                "type": "object",
                "additionalProperties": {
                  "type": "string"
                },
                "description": "Beside those of the queue, and in their place. Only with the scope `data`."
              },
              "contentType": {
                "type": "string"
              }
            }
          },
          "attempts": {
            "type": "integer",
            "minimum": 0
          },
          "backoff": {
            "type": "object",
            "properties": {
              "kind": {
                "type": "string",
                "enum": [
                  "exponential",
                  "fixed",
                  "ladder",
                  "linear"
                ]
              },
              "delayMs": {
                "type": "number"
              },
              "jitter": {
                "type": "string",
                "enum": [
                  "equal",
                  "full",
                  "none"
                ]
              },
              "maxMs": {
                "type": "number"
              },
              "factor": {
                "type": "number"
              },
              "stepsMs": {
                "type": "array",
                "items": {
                  "type": "number"
                }
              }
            },
            "required": [
              "kind",
              "jitter"
            ]
          },
          "set": {
            "type": "string"
          },
          "tags": {
            "type": "array",
            "items": {
              "type": "string"
            }
          },
          "priority": {
            "type": "string",
            "enum": [
              "high",
              "low",
              "normal"
            ]
          },
          "onLate": {
            "type": "string",
            "enum": [
              "dead",
              "drop",
              "run"
            ]
          },
          "cost": {
            "type": "integer",
            "minimum": 0
          },
          "expiresAtMs": {
            "type": "number"
          },
          "maxLatenessMs": {
            "type": "number"
          }
        },
        "description": "What this one job was told, if that differs from its queue's."
      },
      "askedDueMs": {
        "type": "number",
        "description": "The due time that the producer asked for, in epoch ms.",
        "example": 1763719000000
      },
      "readable": {
        "type": "boolean",
        "description": "False when the job's record is missing or cannot be read."
      }
    },
    "required": [
      "id",
      "queue",
      "deadLetter",
      "etag",
      "atMs",
      "history",
      "attempts",
      "crashes",
      "bare",
      "partition",
      "tags",
      "failures",
      "generation",
      "hidden",
      "options",
      "readable"
    ]
  },
  "DeadLetterGroup": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "error": {
        "type": "string",
        "description": "The last error, without numbers and ids. Only with the scope `data`."
      },
      "reason": {
        "type": "string",
        "description": "Without numbers and ids too, where a handler gave it: the text of an `Unrecoverable`. What a handler gave only with the scope `data`."
      },
      "count": {
        "type": "integer",
        "minimum": 0
      },
      "lastMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "firstMs": {
        "type": "number",
        "description": "When the first and the last of them died, in epoch ms.",
        "example": 1763719000000
      },
      "example": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string"
          },
          "deadLetter": {
            "type": "string"
          }
        },
        "required": [
          "id",
          "deadLetter"
        ],
        "description": "The newest of them."
      }
    },
    "required": [
      "count",
      "lastMs",
      "firstMs",
      "example"
    ]
  },
  "Replayed": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "description": "The job that was named, else whose dead letter it is, unless that is gone."
      },
      "dueMs": {
        "type": "number",
        "description": "With `scheduled`: epoch ms from which the job may run.",
        "example": 1763719000000
      },
      "deadLetter": {
        "type": "string",
        "description": "Left out where a job was named and has none."
      },
      "place": {
        "type": "string",
        "enum": [
          "first",
          "last"
        ],
        "description": "With `scheduled`, in strict order: `first`: the job has its group again, which waited for it · `last`: its group has gone on, and the job is a new one behind others."
      },
      "status": {
        "type": "string",
        "enum": [
          "changed",
          "closed",
          "empty",
          "gone",
          "indeterminate",
          "live",
          "scheduled"
        ],
        "description": "`scheduled`: the job lives again, and the dead letter is gone · `live`: a job of this id lives, and the dead letter stays · `closed`: a tag of the job is closed, and the dead letter stays · `empty`: the dead letter has no record to replay · `gone`: there is no such dead letter · `changed`: it is another one than `ifMatch` says, and stays · `indeterminate`: the reply was lost and the dead letter is gone since, but nothing is known of its job, so nobody knows what became of both."
      }
    },
    "required": [
      "status"
    ]
  },
  "ReplayedMany": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "dryRun": {
        "type": "boolean"
      },
      "matched": {
        "type": "integer",
        "minimum": 0
      },
      "replayed": {
        "type": "integer",
        "minimum": 0
      },
      "live": {
        "type": "integer",
        "minimum": 0,
        "description": "They stay: a job of their id lives."
      },
      "closed": {
        "type": "integer",
        "minimum": 0,
        "description": "They stay: a tag of their job is closed."
      },
      "empty": {
        "type": "integer",
        "minimum": 0
      },
      "gone": {
        "type": "integer",
        "minimum": 0
      },
      "deadLetters": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Replayed"
        },
        "description": "Of those that were named: each. Else the first 100 that were not replayed."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "queue",
      "dryRun",
      "matched",
      "replayed",
      "live",
      "closed",
      "empty",
      "gone",
      "deadLetters",
      "scanned"
    ]
  },
  "Purged": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "dryRun": {
        "type": "boolean"
      },
      "matched": {
        "type": "integer",
        "minimum": 0
      },
      "removed": {
        "type": "integer",
        "minimum": 0
      },
      "scanned": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "queue",
      "dryRun",
      "matched",
      "removed",
      "scanned"
    ]
  },
  "Erased": {
    "type": "object",
    "properties": {
      "dryRun": {
        "type": "boolean"
      },
      "left": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs run, were asked to stop, or are there still. Nothing is left where this is 0, there is no `cursor`, and `failed` is empty."
      },
      "failed": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues in which not all was removed, each with the reason, because they did not answer: erase again when they do."
      },
      "cursor": {
        "type": "string",
        "description": "Where to go on if this is not the end."
      },
      "queues": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ErasedQueue"
        },
        "description": "Those that this request has looked at."
      }
    },
    "required": [
      "dryRun",
      "left",
      "failed",
      "queues"
    ]
  },
  "ErasedQueue": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "running": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that run and were asked to stop. Erase again when they have ended: their end leaves a record."
      },
      "history": {
        "type": "integer",
        "minimum": 0,
        "description": "Records of jobs that are over, with their results and errors."
      },
      "scanned": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs, dead letters and records were looked at."
      },
      "left": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs with the tag that are there still, at the end: they run, or somebody has scheduled them meanwhile."
      },
      "jobs": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that waited and are cancelled now; of a dry run, all that are not over."
      },
      "deadLetters": {
        "type": "integer",
        "minimum": 0
      },
      "logs": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are over, and whose log lines were removed; of a dry run, all that have log lines. Those of others go with them."
      }
    },
    "required": [
      "queue",
      "running",
      "history",
      "scanned",
      "left",
      "jobs",
      "deadLetters",
      "logs"
    ]
  },
  "SchedulesPage": {
    "type": "object",
    "properties": {
      "namespace": {
        "type": "string"
      },
      "schedules": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Schedule"
        }
      },
      "more": {
        "type": "integer",
        "minimum": 0,
        "description": "How many there are besides."
      },
      "unreadable": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "name": {
              "type": "string"
            },
            "why": {
              "type": "string"
            }
          },
          "required": [
            "name",
            "why"
          ]
        }
      }
    },
    "required": [
      "namespace",
      "schedules",
      "more",
      "unreadable"
    ]
  },
  "Schedule": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "paused": {
        "type": "string",
        "description": "Why it is paused; left out while it fires."
      },
      "unreadable": {
        "type": "string",
        "description": "Why nobody can read how far it was fired. It does not fire; removed and put again, it counts from then."
      },
      "lastMs": {
        "type": "number",
        "description": "Epoch ms of the instant of the job that it made last.",
        "example": 1763719000000
      },
      "source": {
        "type": "string",
        "enum": [
          "call",
          "file"
        ],
        "description": "`file`: of the configuration; `call`: by somebody."
      },
      "pausedBy": {
        "type": "string",
        "enum": [
          "definition",
          "hand"
        ],
        "description": "Who paused it: its `definition`, or somebody by `hand`, which holds until it is resumed; left out while it fires."
      },
      "hand": {
        "type": "object",
        "properties": {
          "by": {
            "type": "string",
            "description": "The name of a token, or the user of a process."
          },
          "atMs": {
            "type": "number",
            "description": "Epoch ms by the clock of Redis.",
            "example": 1763719000000
          }
        },
        "required": [
          "by",
          "atMs"
        ],
        "description": "Who paused it by hand, and when; left out where nobody did, or where an older version wrote it."
      },
      "nextMs": {
        "type": "number",
        "description": "Epoch ms of its next instant; left out when it is paused, over or unreadable.",
        "example": 1763719000000
      },
      "reachedMs": {
        "type": "number",
        "description": "The instants up to this epoch ms were handled.",
        "example": 1763719000000
      },
      "runs": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that it made."
      },
      "skipped": {
        "type": "integer",
        "minimum": 0,
        "description": "Instants that made none, because an earlier job was not over, or because nobody was there in time."
      },
      "hidden": {
        "type": "boolean",
        "description": "Data, headers and what handlers said are left out, because the token has not the scope `data`."
      },
      "input": {
        "type": "object",
        "additionalProperties": {},
        "description": "As it was written, instants in UTC; `data` and `headers` only with the scope `data`."
      },
      "etag": {
        "type": "string",
        "description": "The `ETag` without its quotes; with the scope `data` or `write`."
      }
    },
    "required": [
      "queue",
      "name",
      "source",
      "runs",
      "skipped",
      "hidden",
      "input"
    ]
  },
  "ScheduleChanged": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "changed",
          "created",
          "unchanged"
        ],
        "description": "`unchanged`: the very same definition was there."
      },
      "nextMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "paused": {
        "type": "string"
      }
    },
    "required": [
      "name",
      "status"
    ]
  },
  "Preview": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "rows": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/PreviewRow"
        }
      },
      "leftOut": {
        "$ref": "#/components/schemas/PreviewLeftOut",
        "description": "What has no row: an answer has at most a megabyte."
      }
    },
    "required": [
      "name",
      "rows"
    ]
  },
  "PreviewRow": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "description": "The id of its job; left out when it makes none."
      },
      "atMs": {
        "type": "number",
        "description": "Epoch ms of the instant.",
        "example": 1763719000000
      },
      "local": {
        "type": "string",
        "description": "The wall-clock time at that instant in the schedule's zone, such as `2026-03-08T03:30:00`."
      },
      "offset": {
        "type": "string",
        "description": "The offset of the zone at that instant, such as `-04:00`."
      },
      "named": {
        "type": "string",
        "description": "The wall-clock time that the rule names, where it is another."
      },
      "dst": {
        "type": "string",
        "enum": [
          "first",
          "gap",
          "second",
          "shifted"
        ],
        "description": "What a clock change did: `shifted` by a gap, the `first` or `second` of two, or lost in a `gap`."
      },
      "calendar": {
        "type": "string",
        "enum": [
          "moved",
          "outside-hours",
          "skip-date"
        ],
        "description": "What the calendar did: `moved` to the next working moment, or why it is no working time."
      },
      "dropped": {
        "type": "string",
        "enum": [
          "coincides",
          "gap",
          "outside-hours",
          "overlap",
          "paused",
          "skip-date",
          "unreadable"
        ],
        "description": "Why it does not fire: `gap`, `overlap`, `skip-date`, `outside-hours`, or `coincides` with another; or because the schedule is `paused`, or nobody can read how far it is (`unreadable`)."
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms from which its job may run: the instant and the jitter.",
        "example": 1763719000000
      },
      "leftOut": {
        "type": "integer",
        "minimum": 0,
        "description": "So many instants that follow are dropped for the same reason, and have no row of their own."
      }
    },
    "required": [
      "atMs",
      "local",
      "offset"
    ],
    "description": "One instant of a schedule: when it fires, or why it does not."
  },
  "PreviewLeftOut": {
    "type": "object",
    "properties": {
      "dropped": {
        "type": "integer",
        "minimum": 0,
        "description": "Instants between the rows that make no job."
      },
      "later": {
        "type": "integer",
        "minimum": 0,
        "description": "Instants after the last row that were asked for and make a job."
      },
      "atLeast": {
        "type": "boolean",
        "description": "There are more of them: counting them ended before the end of the range."
      },
      "upToMs": {
        "type": "number",
        "description": "Epoch ms up to which the rows tell all. The same preview `from` here goes on.",
        "example": 1763719000000
      }
    },
    "required": [
      "dropped",
      "later",
      "atLeast",
      "upToMs"
    ],
    "description": "What a preview has no rows for."
  },
  "PastRuns": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "runs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/PastRun"
        }
      }
    },
    "required": [
      "queue",
      "name",
      "runs"
    ]
  },
  "PastRun": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "description": "The id of its job; left out when it makes none."
      },
      "fate": {
        "type": "string",
        "enum": [
          "dropped",
          "due",
          "made",
          "missed",
          "unknown",
          "waits"
        ],
        "description": "`made`: its job is known · `waits`: its job comes when the job before it is over · `due`: no leader has handled it yet · `dropped`: a clock change took it away · `missed`: it made no job, because nobody was there in time or an earlier job was not over · `unknown`: Redis remembers no ends from so long ago."
      },
      "job": {
        "type": "object",
        "properties": {
          "state": {
            "type": "string",
            "enum": [
              "cancelled",
              "dead",
              "done",
              "expired",
              "ready",
              "running",
              "scheduled",
              "waiting"
            ]
          },
          "attempts": {
            "type": "integer",
            "minimum": 0
          },
          "startedMs": {
            "type": "number",
            "description": "Its last start.",
            "example": 1763719000000
          },
          "latenessMs": {
            "type": "number",
            "description": "From the due time to the start; left out for a job that was started more than once, or never."
          },
          "overMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          }
        },
        "required": [
          "state",
          "attempts"
        ],
        "description": "With `made`."
      },
      "atMs": {
        "type": "number",
        "description": "Epoch ms of the instant.",
        "example": 1763719000000
      },
      "local": {
        "type": "string",
        "description": "The wall-clock time at that instant in the schedule's zone, such as `2026-03-08T03:30:00`."
      },
      "offset": {
        "type": "string",
        "description": "The offset of the zone at that instant, such as `-04:00`."
      },
      "named": {
        "type": "string",
        "description": "The wall-clock time that the rule names, where it is another."
      },
      "dst": {
        "type": "string",
        "enum": [
          "first",
          "gap",
          "second",
          "shifted"
        ],
        "description": "What a clock change did: `shifted` by a gap, the `first` or `second` of two, or lost in a `gap`."
      },
      "calendar": {
        "type": "string",
        "enum": [
          "moved",
          "outside-hours",
          "skip-date"
        ],
        "description": "What the calendar did: `moved` to the next working moment, or why it is no working time."
      },
      "dropped": {
        "type": "string",
        "enum": [
          "coincides",
          "gap",
          "outside-hours",
          "overlap",
          "paused",
          "skip-date",
          "unreadable"
        ],
        "description": "Why it does not fire: `gap`, `overlap`, `skip-date`, `outside-hours`, or `coincides` with another; or because the schedule is `paused`, or nobody can read how far it is (`unreadable`)."
      },
      "dueMs": {
        "type": "number",
        "description": "Epoch ms from which its job may run: the instant and the jitter.",
        "example": 1763719000000
      },
      "leftOut": {
        "type": "integer",
        "minimum": 0,
        "description": "So many instants that follow are dropped for the same reason, and have no row of their own."
      }
    },
    "required": [
      "fate",
      "atMs",
      "local",
      "offset"
    ],
    "description": "One instant, and what became of it."
  },
  "FiredJob": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "atMs": {
        "type": "number",
        "description": "The instant it stands for; left out for one that was asked for now.",
        "example": 1763719000000
      },
      "status": {
        "type": "string",
        "enum": [
          "closed",
          "exists",
          "over",
          "scheduled",
          "would"
        ],
        "description": "`would` in a dry run · `scheduled` · `exists` it is live · `over` it ran, and Redis still knows · `closed` a tag of it is closed"
      }
    },
    "required": [
      "id",
      "status"
    ],
    "description": "What became of one job."
  },
  "Backfilled": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "dryRun": {
        "type": "boolean"
      },
      "jobs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/FiredJob"
        }
      },
      "leftOut": {
        "type": "integer",
        "minimum": 0,
        "description": "So many more, behind the first 5000."
      }
    },
    "required": [
      "name",
      "dryRun",
      "jobs"
    ]
  },
  "TargetTried": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "method": {
        "type": "string"
      },
      "url": {
        "type": "string"
      },
      "steps": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/TargetStep"
        },
        "description": "In their order; after one that is not well there is no more."
      },
      "means": {
        "type": "string",
        "enum": [
          "dead",
          "done",
          "put aside",
          "retry",
          "waits"
        ],
        "description": "What it would have made of a job: `waits`, as this daemon cannot call the target at all."
      },
      "why": {
        "type": "string",
        "description": "Why, unless a job would be done."
      },
      "status": {
        "type": "integer",
        "minimum": 0
      },
      "tookMs": {
        "type": "number"
      },
      "answer": {
        "type": "string",
        "description": "The beginning of the answer, where it may be kept."
      }
    },
    "required": [
      "queue",
      "method",
      "url",
      "steps",
      "means"
    ],
    "description": "One request that was sent to try a target; no job was made."
  },
  "TargetStep": {
    "type": "object",
    "properties": {
      "step": {
        "type": "string",
        "enum": [
          "address",
          "answer",
          "host",
          "names"
        ]
      },
      "isWell": {
        "type": "boolean"
      },
      "text": {
        "type": "string",
        "description": "One sentence, without a secret and without a full stop."
      }
    },
    "required": [
      "step",
      "isWell",
      "text"
    ]
  },
  "Simulation": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "nowMs": {
        "type": "number",
        "description": "When this was read, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "untilMs": {
        "type": "number",
        "description": "Jobs that become due up to then are played, until all have started.",
        "example": 1763719000000
      },
      "seed": {
        "type": "integer",
        "minimum": 0
      },
      "due": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are due now."
      },
      "scheduled": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that become due."
      },
      "coming": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that schedules will make."
      },
      "usual": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that usually come besides; left out: nobody knows."
      },
      "steps": {
        "type": "object",
        "properties": {
          "fromMs": {
            "type": "number",
            "description": "When the first step begins, epoch ms."
          },
          "stepMs": {
            "type": "number"
          },
          "due": {
            "type": "array",
            "items": {
              "type": "integer",
              "minimum": 0
            },
            "description": "How many jobs are due in each."
          }
        },
        "required": [
          "fromMs",
          "stepMs",
          "due"
        ],
        "description": "All of them by when they are due."
      },
      "asItIs": {
        "$ref": "#/components/schemas/SimulatedRun"
      },
      "asAsked": {
        "$ref": "#/components/schemas/SimulatedRun",
        "description": "Left out: nothing else was asked for."
      },
      "assumptions": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "What was assumed, a sentence each."
      }
    },
    "required": [
      "queue",
      "nowMs",
      "untilMs",
      "seed",
      "due",
      "scheduled",
      "coming",
      "steps",
      "asItIs",
      "assumptions"
    ],
    "description": "What a queue would do."
  },
  "SimulatedRun": {
    "type": "object",
    "properties": {
      "limits": {
        "type": "string",
        "description": "In short."
      },
      "slots": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs the workers run at a time."
      },
      "runTime": {
        "type": "string"
      },
      "started": {
        "type": "integer",
        "minimum": 0
      },
      "left": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that had not started a year later."
      },
      "backlogThroughMs": {
        "type": "number",
        "description": "When the last of the jobs has started that are due now, epoch ms; left out: none is due, or not all have."
      },
      "throughMs": {
        "type": "number",
        "description": "When the last of all jobs has started, epoch ms; left out: there is none, or not all have.",
        "example": 1763719000000
      },
      "p50Ms": {
        "type": "number",
        "description": "Half of the jobs start within this after their due times, to 2 %."
      },
      "p99Ms": {
        "type": "number",
        "description": "99 % of the jobs start within this after their due times, to 2 %."
      },
      "maxMs": {
        "type": "number"
      },
      "worstMinuteMs": {
        "type": "number",
        "description": "The minute in which the job was due that starts latest, epoch ms."
      },
      "maxLine": {
        "type": "integer",
        "minimum": 0,
        "description": "The most jobs that were due and had not started."
      },
      "maxLineAtMs": {
        "type": "number",
        "description": "When they did, epoch ms."
      },
      "latestMs": {
        "type": "array",
        "items": {
          "type": [
            "number",
            "null"
          ]
        },
        "description": "By step, how late the latest start is of the jobs that are due then; null: none is, or one had not started a year later."
      },
      "groups": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/SimulatedGroup"
        },
        "description": "The ten groups with the latest starts."
      }
    },
    "required": [
      "limits",
      "slots",
      "runTime",
      "started",
      "left",
      "maxMs",
      "maxLine",
      "maxLineAtMs",
      "latestMs",
      "groups"
    ],
    "description": "What became of all jobs: once as the queue is, once as somebody asks."
  },
  "SimulatedGroup": {
    "type": "object",
    "properties": {
      "group": {
        "type": "string"
      },
      "jobs": {
        "type": "integer",
        "minimum": 0,
        "description": "Usual arrivals have no group and do not count."
      },
      "throughMs": {
        "type": "number",
        "description": "When the last of them has started, epoch ms; left out: not all have.",
        "example": 1763719000000
      },
      "p50Ms": {
        "type": "number"
      },
      "p99Ms": {
        "type": "number"
      },
      "maxMs": {
        "type": "number"
      }
    },
    "required": [
      "group",
      "jobs",
      "maxMs"
    ],
    "description": "What became of the jobs of a group."
  },
  "Forecast": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string",
        "description": "Left out: all queues."
      },
      "atMs": {
        "type": "number",
        "description": "Epoch ms from which it counts, and up to which.",
        "example": 1763719000000
      },
      "untilMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "by": {
        "type": "string",
        "enum": [
          "half-hour",
          "hour",
          "minute"
        ]
      },
      "buckets": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ForecastBucket"
        }
      },
      "queues": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/QueueForecast"
        },
        "description": "The same split by queue, the fullest first, without those in which nothing comes due; left out: nobody asked for it."
      },
      "busiest": {
        "$ref": "#/components/schemas/ForecastBucket",
        "description": "The fullest one; left out when nothing comes due."
      },
      "overdue": {
        "type": "integer",
        "minimum": 0,
        "description": "Due by now, and not promoted yet."
      },
      "ready": {
        "type": "integer",
        "minimum": 0,
        "description": "Promoted, and not started yet."
      },
      "paused": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Queues that are paused: their jobs come due, and wait."
      },
      "backlogs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Backlog"
        },
        "description": "Queues in which jobs wait in line for a rate; not those that are paused."
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues whose waiting jobs are not counted, because they did not answer, each with the reason."
      },
      "schedules": {
        "type": "object",
        "properties": {
          "counted": {
            "type": "integer",
            "minimum": 0
          },
          "paused": {
            "type": "integer",
            "minimum": 0
          },
          "unreadable": {
            "type": "integer",
            "minimum": 0
          },
          "uncounted": {
            "type": "integer",
            "minimum": 0,
            "description": "Whose working times are too many to count."
          },
          "estimated": {
            "type": "integer",
            "minimum": 0,
            "description": "Those with `H` that others like them stand for."
          }
        },
        "required": [
          "counted",
          "paused",
          "unreadable",
          "uncounted",
          "estimated"
        ]
      }
    },
    "required": [
      "atMs",
      "untilMs",
      "by",
      "buckets",
      "overdue",
      "ready",
      "paused",
      "backlogs",
      "unread",
      "schedules"
    ],
    "description": "What comes due when: jobs that wait, and those that schedules will make. Times are epoch ms."
  },
  "ForecastBucket": {
    "type": "object",
    "properties": {
      "fromMs": {
        "type": "number",
        "description": "Epoch ms."
      },
      "jobs": {
        "type": "integer",
        "minimum": 0
      },
      "scheduled": {
        "type": "integer",
        "minimum": 0,
        "description": "Of them: jobs that wait in Redis already."
      },
      "coming": {
        "type": "integer",
        "minimum": 0,
        "description": "Of them: jobs that schedules are going to make."
      }
    },
    "required": [
      "fromMs",
      "jobs",
      "scheduled",
      "coming"
    ]
  },
  "QueueForecast": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "jobs": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 0
        },
        "description": "So many jobs in each bucket."
      }
    },
    "required": [
      "queue",
      "jobs"
    ],
    "description": "What comes due in one queue."
  },
  "QueueLate": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "fromMs": {
        "type": "number"
      },
      "groups": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "group": {
              "type": "string"
            },
            "ms": {
              "type": "integer",
              "minimum": 0
            }
          },
          "required": [
            "group",
            "ms"
          ]
        },
        "description": "Ten at the most, the longest wait first."
      },
      "starts": {
        "type": "integer",
        "minimum": 0
      },
      "toMs": {
        "type": "number"
      },
      "verdict": {
        "type": "string",
        "description": "In one sentence."
      },
      "late": {
        "type": "integer",
        "minimum": 0,
        "description": "Those that were late by a second or more."
      },
      "p50Ms": {
        "type": [
          "number",
          "null"
        ]
      },
      "p99Ms": {
        "type": [
          "number",
          "null"
        ]
      },
      "maxMs": {
        "type": [
          "number",
          "null"
        ]
      },
      "known": {
        "type": "integer",
        "minimum": 0,
        "description": "The share of the time of which leaders have told, from 0 to 1."
      },
      "worst": {
        "type": [
          "object",
          "null"
        ],
        "properties": {
          "atMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          },
          "starts": {
            "type": "integer",
            "minimum": 0
          },
          "p99Ms": {
            "type": "number",
            "description": "99 % of its starts were within this."
          }
        },
        "required": [
          "atMs",
          "starts",
          "p99Ms"
        ],
        "description": "The minute with the latest starts."
      },
      "causes": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "cause": {
              "type": "string",
              "enum": [
                "behind",
                "busy",
                "clock-set",
                "closed",
                "concurrency",
                "group-full",
                "line",
                "linger",
                "made-late",
                "no-leader",
                "no-worker",
                "paused",
                "promotion",
                "ran",
                "rate",
                "shared",
                "unasked",
                "unproven",
                "worker"
              ]
            },
            "text": {
              "type": "string",
              "description": "In words."
            },
            "ms": {
              "type": "integer",
              "minimum": 0
            },
            "share": {
              "type": "integer",
              "minimum": 0,
              "description": "Of the lateness of all starts, from 0 to 1."
            }
          },
          "required": [
            "cause",
            "text",
            "ms",
            "share"
          ]
        },
        "description": "The most first. Empty where no worker has told any."
      },
      "diary": {
        "type": "object",
        "properties": {
          "partitions": {
            "type": "integer",
            "minimum": 0
          },
          "entries": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "partitions": {
                  "type": "integer",
                  "minimum": 0
                },
                "atMs": {
                  "type": "number",
                  "description": "Milliseconds since 1970 in UTC.",
                  "example": 1763719000000
                },
                "what": {
                  "type": "string",
                  "enum": [
                    "closed",
                    "elected",
                    "opened",
                    "paused",
                    "resigned",
                    "resumed",
                    "served",
                    "set",
                    "unserved"
                  ]
                },
                "entry": {
                  "type": "string"
                },
                "why": {
                  "type": "string"
                },
                "group": {
                  "type": "string"
                },
                "by": {
                  "type": "string"
                },
                "untilMs": {
                  "type": "number",
                  "description": "Milliseconds since 1970 in UTC.",
                  "example": 1763719000000
                },
                "before": {
                  "type": "object",
                  "properties": {
                    "limits": {
                      "type": "array",
                      "items": {
                        "type": "string"
                      }
                    },
                    "broadcast": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "max": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "bytes": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "age": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            }
                          }
                        }
                      ]
                    },
                    "perGroup": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "maxPending": {
                              "anyOf": [
                                {
                                  "type": "integer",
                                  "minimum": 0
                                },
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                }
                              ]
                            },
                            "concurrency": {
                              "anyOf": [
                                {
                                  "type": "integer",
                                  "minimum": 0
                                },
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                }
                              ]
                            },
                            "rate": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "object",
                                  "properties": {
                                    "limit": {
                                      "type": "integer",
                                      "minimum": 0
                                    },
                                    "per": {
                                      "anyOf": [
                                        {
                                          "type": "string"
                                        },
                                        {
                                          "type": "integer",
                                          "minimum": 0
                                        }
                                      ]
                                    },
                                    "burst": {
                                      "type": "integer",
                                      "minimum": 0
                                    }
                                  },
                                  "required": [
                                    "limit",
                                    "per"
                                  ]
                                }
                              ]
                            },
                            "order": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "strict"
                                  ]
                                }
                              ]
                            },
                            "onDead": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "continue"
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "hold"
                                  ]
                                }
                              ]
                            }
                          }
                        }
                      ]
                    },
                    "maxPending": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "history": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "keep": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "max": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "result": {
                              "type": "boolean"
                            },
                            "resultBytesMax": {
                              "type": "integer",
                              "minimum": 0
                            }
                          }
                        }
                      ]
                    },
                    "target": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "url": {
                              "type": "string"
                            },
                            "headers": {
                              "type": "object",
                              "additionalProperties": {
                                "type": "string"
                              }
                            },
                            "timeout": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "maxAge": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "hosts": {
                              "type": "array",
                              "items": {
                                "type": "string"
                              }
                            },
                            "method": {
                              "type": "string",
                              "enum": [
                                "DELETE",
                                "GET",
                                "HEAD",
                                "PATCH",
                                "POST",
                                "PUT"
                              ]
                            },
                            "secret": {
                              "type": "string"
                            },
                            "contentType": {
                              "type": "string"
                            },
                            "format": {
                              "type": "string",
                              "enum": [
                                "cloudevents"
                              ]
                            },
                            "retryOn": {
                              "type": "array",
                              "items": {
                                "type": "integer",
                                "minimum": 0
                              }
                            },
                            "deadOn": {
                              "type": "array",
                              "items": {
                                "type": "integer",
                                "minimum": 0
                              }
                            },
                            "keepAnswer": {
                              "type": "boolean"
                            },
                            "certificate": {
                              "type": "string"
                            }
                          },
                          "required": [
                            "url"
                          ]
                        }
                      ]
                    },
                    "concurrency": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "rate": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "object",
                          "properties": {
                            "limit": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "per": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "burst": {
                              "type": "integer",
                              "minimum": 0
                            }
                          },
                          "required": [
                            "limit",
                            "per"
                          ]
                        },
                        {
                          "type": "array",
                          "items": {
                            "anyOf": [
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "object",
                                "properties": {
                                  "limit": {
                                    "type": "integer",
                                    "minimum": 0
                                  },
                                  "per": {
                                    "anyOf": [
                                      {
                                        "type": "string"
                                      },
                                      {
                                        "type": "integer",
                                        "minimum": 0
                                      }
                                    ]
                                  },
                                  "burst": {
                                    "type": "integer",
                                    "minimum": 0
                                  }
                                },
                                "required": [
                                  "limit",
                                  "per"
                                ]
                              }
                            ]
                          }
                        }
                      ]
                    },
                    "groups": {
                      "type": "object",
                      "additionalProperties": {
                        "type": "object",
                        "properties": {
                          "weight": {
                            "type": "integer",
                            "minimum": 0
                          },
                          "maxPending": {
                            "anyOf": [
                              {
                                "type": "integer",
                                "minimum": 0
                              },
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              }
                            ]
                          },
                          "concurrency": {
                            "anyOf": [
                              {
                                "type": "integer",
                                "minimum": 0
                              },
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              }
                            ]
                          },
                          "rate": {
                            "anyOf": [
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "object",
                                "properties": {
                                  "limit": {
                                    "type": "integer",
                                    "minimum": 0
                                  },
                                  "per": {
                                    "anyOf": [
                                      {
                                        "type": "string"
                                      },
                                      {
                                        "type": "integer",
                                        "minimum": 0
                                      }
                                    ]
                                  },
                                  "burst": {
                                    "type": "integer",
                                    "minimum": 0
                                  }
                                },
                                "required": [
                                  "limit",
                                  "per"
                                ]
                              }
                            ]
                          }
                        }
                      }
                    },
                    "redact": {
                      "type": "array",
                      "items": {
                        "type": "string"
                      }
                    },
                    "maxBytes": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "linger": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "integer",
                          "minimum": 0
                        }
                      ]
                    },
                    "ahead": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "integer",
                          "minimum": 0
                        }
                      ]
                    },
                    "lateness": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "over": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "within": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "of": {
                              "type": "integer",
                              "minimum": 0
                            }
                          }
                        }
                      ]
                    },
                    "fair": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "costs": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    }
                  }
                },
                "after": {
                  "type": "object",
                  "properties": {
                    "limits": {
                      "type": "array",
                      "items": {
                        "type": "string"
                      }
                    },
                    "broadcast": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "max": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "bytes": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "age": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            }
                          }
                        }
                      ]
                    },
                    "perGroup": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "maxPending": {
                              "anyOf": [
                                {
                                  "type": "integer",
                                  "minimum": 0
                                },
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                }
                              ]
                            },
                            "concurrency": {
                              "anyOf": [
                                {
                                  "type": "integer",
                                  "minimum": 0
                                },
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                }
                              ]
                            },
                            "rate": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "object",
                                  "properties": {
                                    "limit": {
                                      "type": "integer",
                                      "minimum": 0
                                    },
                                    "per": {
                                      "anyOf": [
                                        {
                                          "type": "string"
                                        },
                                        {
                                          "type": "integer",
                                          "minimum": 0
                                        }
                                      ]
                                    },
                                    "burst": {
                                      "type": "integer",
                                      "minimum": 0
                                    }
                                  },
                                  "required": [
                                    "limit",
                                    "per"
                                  ]
                                }
                              ]
                            },
                            "order": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "strict"
                                  ]
                                }
                              ]
                            },
                            "onDead": {
                              "anyOf": [
                                {
                                  "type": "boolean",
                                  "enum": [
                                    false
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "continue"
                                  ]
                                },
                                {
                                  "type": "string",
                                  "enum": [
                                    "hold"
                                  ]
                                }
                              ]
                            }
                          }
                        }
                      ]
                    },
                    "maxPending": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "history": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "keep": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "max": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "result": {
                              "type": "boolean"
                            },
                            "resultBytesMax": {
                              "type": "integer",
                              "minimum": 0
                            }
                          }
                        }
                      ]
                    },
                    "target": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "url": {
                              "type": "string"
                            },
                            "headers": {
                              "type": "object",
                              "additionalProperties": {
                                "type": "string"
                              }
                            },
                            "timeout": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "maxAge": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "hosts": {
                              "type": "array",
                              "items": {
                                "type": "string"
                              }
                            },
                            "method": {
                              "type": "string",
                              "enum": [
                                "DELETE",
                                "GET",
                                "HEAD",
                                "PATCH",
                                "POST",
                                "PUT"
                              ]
                            },
                            "secret": {
                              "type": "string"
                            },
                            "contentType": {
                              "type": "string"
                            },
                            "format": {
                              "type": "string",
                              "enum": [
                                "cloudevents"
                              ]
                            },
                            "retryOn": {
                              "type": "array",
                              "items": {
                                "type": "integer",
                                "minimum": 0
                              }
                            },
                            "deadOn": {
                              "type": "array",
                              "items": {
                                "type": "integer",
                                "minimum": 0
                              }
                            },
                            "keepAnswer": {
                              "type": "boolean"
                            },
                            "certificate": {
                              "type": "string"
                            }
                          },
                          "required": [
                            "url"
                          ]
                        }
                      ]
                    },
                    "concurrency": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "rate": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "string"
                        },
                        {
                          "type": "object",
                          "properties": {
                            "limit": {
                              "type": "integer",
                              "minimum": 0
                            },
                            "per": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "burst": {
                              "type": "integer",
                              "minimum": 0
                            }
                          },
                          "required": [
                            "limit",
                            "per"
                          ]
                        },
                        {
                          "type": "array",
                          "items": {
                            "anyOf": [
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "object",
                                "properties": {
                                  "limit": {
                                    "type": "integer",
                                    "minimum": 0
                                  },
                                  "per": {
                                    "anyOf": [
                                      {
                                        "type": "string"
                                      },
                                      {
                                        "type": "integer",
                                        "minimum": 0
                                      }
                                    ]
                                  },
                                  "burst": {
                                    "type": "integer",
                                    "minimum": 0
                                  }
                                },
                                "required": [
                                  "limit",
                                  "per"
                                ]
                              }
                            ]
                          }
                        }
                      ]
                    },
                    "groups": {
                      "type": "object",
                      "additionalProperties": {
                        "type": "object",
                        "properties": {
                          "weight": {
                            "type": "integer",
                            "minimum": 0
                          },
                          "maxPending": {
                            "anyOf": [
                              {
                                "type": "integer",
                                "minimum": 0
                              },
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              }
                            ]
                          },
                          "concurrency": {
                            "anyOf": [
                              {
                                "type": "integer",
                                "minimum": 0
                              },
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              }
                            ]
                          },
                          "rate": {
                            "anyOf": [
                              {
                                "type": "boolean",
                                "enum": [
                                  false
                                ]
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "string"
                              },
                              {
                                "type": "object",
                                "properties": {
                                  "limit": {
                                    "type": "integer",
                                    "minimum": 0
                                  },
                                  "per": {
                                    "anyOf": [
                                      {
                                        "type": "string"
                                      },
                                      {
                                        "type": "integer",
                                        "minimum": 0
                                      }
                                    ]
                                  },
                                  "burst": {
                                    "type": "integer",
                                    "minimum": 0
                                  }
                                },
                                "required": [
                                  "limit",
                                  "per"
                                ]
                              }
                            ]
                          }
                        }
                      }
                    },
                    "redact": {
                      "type": "array",
                      "items": {
                        "type": "string"
                      }
                    },
                    "maxBytes": {
                      "anyOf": [
                        {
                          "type": "integer",
                          "minimum": 0
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        }
                      ]
                    },
                    "linger": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "integer",
                          "minimum": 0
                        }
                      ]
                    },
                    "ahead": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "integer",
                          "minimum": 0
                        }
                      ]
                    },
                    "lateness": {
                      "anyOf": [
                        {
                          "type": "boolean",
                          "enum": [
                            false
                          ]
                        },
                        {
                          "type": "boolean",
                          "enum": [
                            true
                          ]
                        },
                        {
                          "type": "object",
                          "properties": {
                            "over": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "within": {
                              "anyOf": [
                                {
                                  "type": "string"
                                },
                                {
                                  "type": "integer",
                                  "minimum": 0
                                }
                              ]
                            },
                            "of": {
                              "type": "integer",
                              "minimum": 0
                            }
                          }
                        }
                      ]
                    },
                    "fair": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "costs": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    }
                  }
                },
                "fromMs": {
                  "type": "number"
                }
              },
              "required": [
                "partitions",
                "atMs",
                "what",
                "entry"
              ]
            }
          },
          "intervals": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "partitions": {
                  "type": "integer",
                  "minimum": 0
                },
                "what": {
                  "type": "string",
                  "enum": [
                    "closed",
                    "leaderless",
                    "paused",
                    "unserved"
                  ]
                },
                "why": {
                  "type": "string"
                },
                "group": {
                  "type": "string"
                },
                "by": {
                  "type": "string"
                },
                "fromMs": {
                  "type": "number"
                },
                "toMs": {
                  "type": "number"
                }
              },
              "required": [
                "partitions",
                "what"
              ]
            }
          }
        },
        "required": [
          "partitions",
          "entries",
          "intervals"
        ]
      }
    },
    "required": [
      "queue",
      "fromMs",
      "groups",
      "starts",
      "toMs",
      "verdict",
      "late",
      "p50Ms",
      "p99Ms",
      "maxMs",
      "known",
      "worst",
      "causes",
      "diary"
    ]
  },
  "Backlog": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "rate": {
        "type": "string",
        "description": "Such as `10/s`."
      },
      "perSecond": {
        "type": "number",
        "description": "So many jobs may start in a second."
      },
      "waiting": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are due and wait."
      },
      "waitingThroughMs": {
        "type": "number",
        "description": "Epoch ms by which these have started.",
        "example": 1763719000000
      },
      "throughMs": {
        "type": "number",
        "description": "Epoch ms by which the line is empty, with what becomes due meanwhile; left out: not before the end of the forecast.",
        "example": 1763719000000
      },
      "left": {
        "type": "integer",
        "minimum": 0,
        "description": "So many jobs wait at the end of the forecast, where the line is not empty before."
      }
    },
    "required": [
      "queue",
      "rate",
      "perSecond",
      "waiting",
      "waitingThroughMs",
      "left"
    ],
    "description": "When the rate of a queue will be through with its line."
  },
  "Leaders": {
    "type": "object",
    "properties": {
      "namespace": {
        "type": "string"
      },
      "partitions": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Led"
        }
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        }
      }
    },
    "required": [
      "namespace",
      "partitions",
      "unread"
    ]
  },
  "Led": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "partition": {
        "type": "integer",
        "minimum": 0
      },
      "leader": {
        "$ref": "#/components/schemas/Leader"
      },
      "lagMs": {
        "type": "number",
        "description": "How long the oldest job has been due."
      },
      "backlog": {
        "type": "integer",
        "minimum": 0,
        "description": "Jobs that are ready and wait for a worker."
      },
      "paused": {
        "type": "boolean"
      },
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      }
    },
    "required": [
      "queue",
      "partition",
      "backlog",
      "paused",
      "nowMs"
    ]
  },
  "Workers": {
    "type": "object",
    "properties": {
      "namespace": {
        "type": "string"
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "What workers hold of these is not known."
      },
      "versions": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/VersionCount"
        },
        "description": "Of all processes that live, daemons and subscribers too."
      },
      "workers": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Worker"
        }
      }
    },
    "required": [
      "namespace",
      "unread",
      "versions",
      "workers"
    ]
  },
  "Worker": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "pause": {
        "$ref": "#/components/schemas/WorkerPause",
        "description": "It starts nothing new; left out: it is not paused."
      },
      "pending": {
        "type": "integer",
        "minimum": 0,
        "description": "Entries it holds: running, or about to start."
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "state": {
        "type": "string",
        "enum": [
          "alive",
          "missing"
        ]
      },
      "startedMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "jobs": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "id": {
              "type": "string"
            },
            "queue": {
              "type": "string"
            },
            "partition": {
              "type": "integer",
              "minimum": 0
            },
            "bare": {
              "type": "boolean"
            },
            "attempt": {
              "type": "integer",
              "minimum": 0,
              "description": "Left out: delivered, and not started by this consumer yet."
            },
            "startedMs": {
              "type": "number",
              "description": "Milliseconds since 1970 in UTC.",
              "example": 1763719000000
            },
            "dueMs": {
              "type": "number",
              "description": "Where it was started before this time, its handler begins then.",
              "example": 1763719000000
            }
          },
          "required": [
            "id",
            "queue",
            "partition",
            "bare",
            "dueMs"
          ]
        }
      },
      "host": {
        "type": "string"
      },
      "pid": {
        "type": "integer",
        "minimum": 0
      },
      "via": {
        "type": "string",
        "enum": [
          "http"
        ],
        "description": "Of a worker over HTTP: it has no process of duestream, and comes from this address."
      },
      "address": {
        "type": "string"
      },
      "version": {
        "type": "string",
        "description": "Of duestream; left out where the process does not say it."
      },
      "beatAgoMs": {
        "type": "number",
        "description": "How long ago it sent its last heartbeat."
      },
      "slots": {
        "type": "object",
        "additionalProperties": {
          "type": "integer",
          "minimum": 0
        },
        "description": "How many jobs of each queue it runs at a time; left out where the process does not say it."
      },
      "pauses": {
        "type": "boolean",
        "description": "Whether it can be paused: a worker of an older version hears of no pause."
      }
    },
    "required": [
      "id",
      "pending",
      "queues",
      "state",
      "jobs",
      "pauses"
    ]
  },
  "WorkerPause": {
    "type": "object",
    "properties": {
      "sinceMs": {
        "type": "number",
        "description": "Since when, epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "by": {
        "type": "string"
      },
      "reason": {
        "type": "string"
      }
    },
    "required": [
      "sinceMs"
    ],
    "description": "Why a worker starts nothing new."
  },
  "WorkerPaused": {
    "type": "object",
    "properties": {
      "changed": {
        "type": "boolean"
      },
      "worker": {
        "type": "string"
      },
      "paused": {
        "type": "boolean"
      },
      "pause": {
        "$ref": "#/components/schemas/WorkerPause",
        "description": "The pause that holds, or the one that has ended."
      }
    },
    "required": [
      "changed",
      "worker",
      "paused"
    ]
  },
  "VersionCount": {
    "type": "object",
    "properties": {
      "version": {
        "type": "string",
        "description": "Left out: a version that does not say it."
      },
      "processes": {
        "type": "integer",
        "minimum": 0
      }
    },
    "required": [
      "processes"
    ],
    "description": "How many processes live that are of one version of duestream."
  },
  "Findings": {
    "type": "object",
    "properties": {
      "ok": {
        "type": "boolean"
      },
      "checks": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Finding"
        }
      }
    },
    "required": [
      "ok",
      "checks"
    ]
  },
  "Finding": {
    "type": "object",
    "properties": {
      "check": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "fail",
          "ok",
          "warn"
        ]
      },
      "saw": {
        "type": "string"
      },
      "advice": {
        "type": "string",
        "description": "What to do; left out when all is well."
      }
    },
    "required": [
      "check",
      "status",
      "saw"
    ]
  },
  "About": {
    "type": "object",
    "properties": {
      "namespace": {
        "type": "string"
      },
      "name": {
        "type": "string",
        "description": "Of the token; `anonymous` where none is needed."
      },
      "title": {
        "type": "string",
        "description": "`http.title`; empty: none."
      },
      "color": {
        "type": "string",
        "enum": [
          "blue",
          "green",
          "none",
          "orange",
          "purple",
          "red"
        ],
        "description": "`http.color`."
      },
      "redis": {
        "type": "string",
        "description": "Its address, without user and password."
      },
      "scopes": {
        "type": "array",
        "items": {
          "type": "string",
          "enum": [
            "admin",
            "data",
            "read",
            "work",
            "write"
          ]
        }
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Left out: all queues."
      }
    },
    "required": [
      "namespace",
      "name",
      "title",
      "color",
      "redis",
      "scopes"
    ]
  },
  "LiveNow": {
    "type": "object",
    "properties": {
      "nowMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "unread": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/UnreadQueue"
        },
        "description": "Queues that could not be read."
      },
      "forecast": {
        "type": "object",
        "properties": {
          "nextHour": {
            "type": "integer",
            "minimum": 0
          },
          "scheduled": {
            "type": "integer",
            "minimum": 0,
            "description": "Of these: jobs that wait in Redis."
          },
          "coming": {
            "type": "integer",
            "minimum": 0,
            "description": "Of these: jobs that schedules will make."
          },
          "perQueue": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "queue": {
                  "type": "string"
                },
                "jobs": {
                  "type": "integer",
                  "minimum": 0
                }
              },
              "required": [
                "queue",
                "jobs"
              ]
            },
            "description": "How many they are of each queue, the most first; queues without any are left out."
          },
          "atMs": {
            "type": "number",
            "description": "Epoch ms from which it counts, and up to which.",
            "example": 1763719000000
          },
          "busiest": {
            "$ref": "#/components/schemas/ForecastBucket",
            "description": "The fullest one; left out when nothing comes due."
          },
          "buckets": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/ForecastBucket"
            }
          },
          "backlogs": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Backlog"
            },
            "description": "Queues in which jobs wait in line for a rate; not those that are paused."
          }
        },
        "required": [
          "nextHour",
          "scheduled",
          "coming",
          "perQueue",
          "atMs",
          "buckets",
          "backlogs"
        ]
      },
      "redis": {
        "type": "object",
        "properties": {
          "usedBytes": {
            "type": "integer",
            "minimum": 0
          },
          "maxBytes": {
            "type": "integer",
            "minimum": 0,
            "description": "0: there is no limit."
          },
          "policy": {
            "type": "string"
          },
          "durability": {
            "type": "string",
            "enum": [
              "always",
              "everysec",
              "no",
              "none",
              "snapshots",
              "unknown"
            ]
          }
        },
        "required": [
          "usedBytes",
          "maxBytes",
          "policy",
          "durability"
        ],
        "description": "This, `forecast` and `doctor`: only for tokens of all queues, and not in the first event."
      },
      "doctor": {
        "type": "object",
        "properties": {
          "atMs": {
            "type": "number",
            "description": "Milliseconds since 1970 in UTC.",
            "example": 1763719000000
          },
          "ok": {
            "type": "boolean"
          },
          "findings": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Finding"
            }
          }
        },
        "required": [
          "atMs",
          "ok",
          "findings"
        ],
        "description": "What is not as it should be."
      },
      "everyMs": {
        "type": "number"
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "queue": {
              "type": "string"
            },
            "partitions": {
              "type": "integer",
              "minimum": 0
            },
            "scheduled": {
              "type": "integer",
              "minimum": 0
            },
            "waiting": {
              "type": "integer",
              "minimum": 0,
              "description": "Jobs that are due and in line: their queue has limits."
            },
            "waitMs": {
              "type": "number",
              "description": "For how long the first of them has waited; 0 when none does."
            },
            "ready": {
              "type": "integer",
              "minimum": 0
            },
            "running": {
              "type": "integer",
              "minimum": 0
            },
            "dead": {
              "type": "integer",
              "minimum": 0
            },
            "paused": {
              "type": "boolean"
            },
            "oldestDueAgeMs": {
              "type": "number",
              "description": "For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits."
            },
            "oldestInLine": {
              "type": "boolean",
              "description": "That job is in line: its queue has limits."
            },
            "quota": {
              "type": "object",
              "properties": {
                "pending": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "Jobs that wait or run."
                },
                "pendingMax": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "0: no limit."
                },
                "bytes": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "Bytes of their records, as the sum that is kept says; 0 without a limit, as nobody counts then."
                },
                "bytesMax": {
                  "type": "integer",
                  "minimum": 0,
                  "description": "0: no limit."
                }
              },
              "required": [
                "pending",
                "pendingMax",
                "bytes",
                "bytesMax"
              ],
              "description": "How much it may hold, and does; left out without limits."
            },
            "limits": {
              "$ref": "#/components/schemas/QueueLimits",
              "description": "How much may run at once; left out: the queue is not gated."
            },
            "workers": {
              "type": "integer",
              "minimum": 0,
              "description": "Living workers that serve it."
            },
            "slots": {
              "type": "integer",
              "minimum": 0,
              "description": "How many of its jobs the living workers run at a time; left out: one of them is older and does not say it."
            },
            "perSecond": {
              "$ref": "#/components/schemas/Rates"
            },
            "obstacle": {
              "type": "string",
              "description": "What stands in the way first, in a sentence, where jobs wait for longer than they should; left out: nothing, or nobody has looked yet."
            },
            "leaders": {
              "type": "array",
              "items": {
                "type": [
                  "string",
                  "null"
                ]
              },
              "description": "Per partition: the process that leads it, or null."
            }
          },
          "required": [
            "queue",
            "partitions",
            "scheduled",
            "waiting",
            "waitMs",
            "ready",
            "running",
            "dead",
            "paused",
            "oldestDueAgeMs",
            "oldestInLine",
            "workers",
            "perSecond",
            "leaders"
          ]
        }
      },
      "total": {
        "type": "object",
        "properties": {
          "scheduled": {
            "type": "integer",
            "minimum": 0
          },
          "waiting": {
            "type": "integer",
            "minimum": 0,
            "description": "Jobs that are due and in line: their queue has limits."
          },
          "ready": {
            "type": "integer",
            "minimum": 0
          },
          "running": {
            "type": "integer",
            "minimum": 0
          },
          "dead": {
            "type": "integer",
            "minimum": 0
          },
          "oldestDueAgeMs": {
            "type": "number",
            "description": "For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits."
          },
          "perSecond": {
            "$ref": "#/components/schemas/Rates"
          }
        },
        "required": [
          "scheduled",
          "waiting",
          "ready",
          "running",
          "dead",
          "oldestDueAgeMs",
          "perSecond"
        ]
      },
      "processes": {
        "type": "object",
        "properties": {
          "daemons": {
            "type": "integer",
            "minimum": 0
          },
          "workers": {
            "type": "integer",
            "minimum": 0
          },
          "versions": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/VersionCount"
            },
            "description": "Of all processes that live."
          },
          "leaders": {
            "type": "integer",
            "minimum": 0
          },
          "partitions": {
            "type": "integer",
            "minimum": 0
          },
          "led": {
            "type": "integer",
            "minimum": 0,
            "description": "Partitions that have a leader."
          }
        },
        "required": [
          "daemons",
          "workers",
          "versions",
          "leaders",
          "partitions",
          "led"
        ]
      }
    },
    "required": [
      "nowMs",
      "unread",
      "everyMs",
      "queues",
      "total",
      "processes"
    ]
  },
  "Rates": {
    "type": "object",
    "properties": {
      "scheduled": {
        "type": "number"
      },
      "promoted": {
        "type": "number"
      },
      "started": {
        "type": "number",
        "description": "What ended, and what workers hold more than before."
      },
      "ended": {
        "type": "number"
      }
    },
    "required": [
      "scheduled",
      "promoted",
      "started",
      "ended"
    ],
    "description": "What happens, per second, since the look before."
  },
  "AuditPage": {
    "type": "object",
    "properties": {
      "cursor": {
        "type": "string",
        "description": "Of the next page; left out on the last one."
      },
      "entries": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/AuditEntry"
        }
      }
    },
    "required": [
      "entries"
    ]
  },
  "AuditEntry": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "entry": {
        "type": "string"
      },
      "atMs": {
        "type": "number",
        "description": "Milliseconds since 1970 in UTC.",
        "example": 1763719000000
      },
      "who": {
        "type": "string",
        "description": "The name of a token, or the user of a machine."
      },
      "way": {
        "type": "string",
        "enum": [
          "api",
          "cli",
          "page",
          "program"
        ],
        "description": "`program`: a call of the library."
      },
      "verb": {
        "type": "string",
        "description": "What was done: the name of an operation."
      },
      "target": {
        "type": "string",
        "description": "The job, schedule or token; of several the first names, or what the filter says."
      },
      "ids": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The jobs or dead letters that are different now, where they are several: the first 100 of them, 4,000 characters together."
      },
      "count": {
        "type": "integer",
        "minimum": 0,
        "description": "How many are different now."
      },
      "before": {
        "type": "object",
        "additionalProperties": {},
        "description": "What is different now, as it was and as it is: settings, limits, the rule of a schedule, a due time. Of what is too long the names alone."
      },
      "after": {
        "type": "object",
        "additionalProperties": {}
      },
      "reason": {
        "type": "string",
        "description": "Why, in the words of whoever did it."
      }
    },
    "required": [
      "entry",
      "atMs",
      "who",
      "way",
      "verb",
      "count"
    ]
  },
  "Session": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "description": "Of the token, or as an application or a proxy says."
      },
      "login": {
        "type": "string",
        "enum": [
          "application",
          "proxy",
          "token"
        ],
        "description": "Where it has logged in: with a token, or elsewhere."
      },
      "scopes": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "queues": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "Left out: all queues."
      },
      "expiresMs": {
        "type": "number",
        "description": "Left out where it has logged in elsewhere.",
        "example": 1763719000000
      },
      "csrf": {
        "type": "string",
        "description": "For the header `X-CSRF-Token` of each request that changes anything."
      }
    },
    "required": [
      "name",
      "login",
      "scopes",
      "csrf"
    ]
  },
  "Claimed": {
    "type": "object",
    "properties": {
      "ended": {
        "type": "array",
        "items": {
          "type": "string",
          "enum": [
            "already",
            "cancelled",
            "fenced",
            "gone",
            "ok"
          ]
        },
        "description": "What became of each of `ends`."
      },
      "leaseMs": {
        "type": "number",
        "description": "So long a run is the worker's after its last beat."
      },
      "beatMs": {
        "type": "number",
        "description": "How often the worker is to beat."
      },
      "jobs": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ClaimedJob"
        }
      }
    },
    "required": [
      "ended",
      "leaseMs",
      "beatMs",
      "jobs"
    ]
  },
  "ClaimedJob": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "run": {
        "type": "string",
        "description": "Names this start in every call about it. Opaque: at most 512 bytes, and 4096 where a foreign producer wrote a longer member."
      },
      "data": {
        "description": "With a codec: as it is stored."
      },
      "codec": {
        "type": "string",
        "description": "The codec that encoded the data."
      },
      "group": {
        "type": "string"
      },
      "priority": {
        "type": "string",
        "enum": [
          "high",
          "low",
          "normal"
        ]
      },
      "headers": {
        "type": "object",
        "additionalProperties": {
          "type": "string"
        }
      },
      "attempt": {
        "type": "integer",
        "minimum": 0,
        "description": "Which start of the job this is, from 1."
      },
      "failures": {
        "type": "integer",
        "minimum": 0
      },
      "crashes": {
        "type": "integer",
        "minimum": 0
      },
      "token": {
        "type": "string",
        "description": "It only grows: a store that is given it can refuse effects of an older start."
      },
      "dueMs": {
        "type": "number",
        "description": "The due time of this start, in epoch ms by the clock of Redis.",
        "example": 1763719000000
      },
      "timeoutMs": {
        "type": "number",
        "description": "For how long the handler may run."
      },
      "suspect": {
        "type": "boolean",
        "enum": [
          true
        ],
        "description": "Workers died under it: it is handed out alone."
      },
      "begin": {
        "type": "boolean",
        "enum": [
          true
        ],
        "description": "Of a queue that delivers at most once: `begin` comes before the handler."
      }
    },
    "required": [
      "id",
      "name",
      "run",
      "attempt",
      "failures",
      "crashes",
      "token",
      "dueMs",
      "timeoutMs"
    ],
    "description": "A job that a worker over HTTP is handed."
  },
  "SettleWords": {
    "type": "object",
    "properties": {
      "results": {
        "type": "array",
        "items": {
          "type": "string",
          "enum": [
            "already",
            "cancelled",
            "fenced",
            "gone",
            "ok"
          ]
        }
      }
    },
    "required": [
      "results"
    ]
  },
  "SettleWord": {
    "type": "object",
    "properties": {
      "result": {
        "type": "string",
        "enum": [
          "already",
          "cancelled",
          "fenced",
          "gone",
          "ok"
        ]
      }
    },
    "required": [
      "result"
    ]
  },
  "BeatWords": {
    "type": "object",
    "properties": {
      "results": {
        "type": "array",
        "items": {
          "type": "string",
          "enum": [
            "cancel",
            "fenced",
            "gone",
            "ok",
            "timeout"
          ]
        }
      }
    },
    "required": [
      "results"
    ]
  },
  "BeatWord": {
    "type": "object",
    "properties": {
      "result": {
        "type": "string",
        "enum": [
          "cancel",
          "fenced",
          "gone",
          "ok",
          "timeout"
        ]
      }
    },
    "required": [
      "result"
    ]
  },
  "WorkerLeft": {
    "type": "object",
    "properties": {
      "given": {
        "type": "integer",
        "minimum": 0,
        "description": "How many jobs went back."
      }
    },
    "required": [
      "given"
    ]
  },
  "SettingsView": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "settings": {
        "$ref": "#/components/schemas/QueueSettings"
      },
      "overrides": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/SettingOverride"
        }
      }
    },
    "required": [
      "queue",
      "settings",
      "overrides"
    ]
  },
  "SettingsChanged": {
    "type": "object",
    "properties": {
      "queue": {
        "type": "string"
      },
      "settings": {
        "$ref": "#/components/schemas/QueueSettings"
      },
      "overrides": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/SettingOverride"
        }
      },
      "changed": {
        "type": "array",
        "items": {
          "type": "string"
        },
        "description": "The settings that were others before."
      }
    },
    "required": [
      "queue",
      "settings",
      "overrides",
      "changed"
    ]
  }
};
