-- again: newer data came for a job while it ran, so its next life begins when the run ends.
-- GIVES   hasNews(run): whether they came; liveAgain(keys, member, run): the next life;
--         hasLivedOn(run, token): the run with that token has ended, and this is the life after it
-- NEEDS   run, tombstone, nudge
-- RULE    The record has the newer data already, and the due time that they asked for. Whoever ends
--         the run writes no tombstone and no dead letter, and leaves the record and its tags. The
--         run of the next life keeps the token, without an attempt: by that the same call again is
--         known. A member that is in scheduled meanwhile stays as it is there.
local function hasNews(run)
  return hasBit(run.cancel, AGAIN)
end

local function liveAgain(keys, member, run)
  local record = redis.call('HGET', keys.jobs, member) or ''
  local due = tonumber(askedOf(record), 36)
  local text = ('%.0f'):format(due)
  redis.call('ZADD', keys.scheduled, 'NX', text, member)
  redis.call('HSET', keys.runs, member,
    freshRun(run.token, run.generation + 1, '0', text, onlyWaited(run.cancel)))
  redis.call('HINCRBY', keys.meta, 'n.scheduled', 1)
  nudge(keys.meta, keys.wake, due)
end

local function hasLivedOn(run, token)
  return run.token == token and run.attempts == '0'
end
