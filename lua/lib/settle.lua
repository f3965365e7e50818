-- settle: what a job that is over leaves behind.
-- GIVES   settle(jobs, done, logs, member, tombstone, now, window): whether nothing is left;
--         logs as log-lines has it
-- NEEDS   log-lines
-- RULE    Without a window nothing is left. A tombstone and its place in done come together, so
--         that the sweep finds it; who writes one without the other says why.
local function settle(jobs, done, logs, member, tombstone, now, window)
  if window > 0 then
    redis.call('HSET', jobs, member, tombstone)
    redis.call('ZADD', done, now, member)
  else
    dropLines(logs, { member })
    redis.call('HDEL', jobs, member)
    return true
  end
end
