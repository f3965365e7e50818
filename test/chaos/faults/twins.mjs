/** Loaded into a daemon before all else: makes it look like the other one, as two containers do, whose main process is 1. */
if (process.env.CHAOS_ACTOR?.startsWith('daemon')) Object.defineProperty(process, 'pid', { value: 1 });
