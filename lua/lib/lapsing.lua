-- lapsing: jobs that no worker has end without a start, as their leader has found them late.
-- GIVES   mayLapse(ready, entry, waits, now): whether the leader may end a job there: entry '' = in
--         scheduled, with the score waits, where it is due; else in ready, where nobody has read
--         it; hasStarted(run); leaveScheduled(keys, member, waits): it goes, and its place in line;
--         isLeftThere(member, entry, record): a call that was cut off has left it in scheduled;
--         finishEnd(keys, member, waits, now): what that call has not done
-- NEEDS   group, head, line, tombstone
-- RULE    A place in line without its job is harmless, a job without its place is not: so the place
--         goes last. Whether somebody takes half-done work back only a worker knows, so a job that
--         had a start is left to the next one. Each job is judged by what is there at this moment,
--         so it does not matter who calls, how late and how often.
local function mayLapse(ready, entry, waits, now)
  if entry == '' then return waits and dueOf(waits) <= now end
  local group, isThere = groupOf(ready), #redis.call('XRANGE', ready, entry, entry) > 0
  return isThere and not (group and not comesAfter(entry, group.delivered))
end

local function hasStarted(run)
  return tonumber(run.attempts) > 0
end

local function leaveScheduled(keys, member, waits)
  redis.call('ZREM', keys.scheduled, member)
  leaveLine(keys.line, member, waits)
end

-- A bare member that is over may have been put again.
local function isLeftThere(member, entry, record)
  return entry == '' and isTombstone(record) and member:find('^j:')
end

local function finishEnd(keys, member, waits, now)
  redis.call('ZADD', keys.done, 'NX', ('%.0f'):format(now), member)
  redis.call('HDEL', keys.runs, member)
  leaveScheduled(keys, member, waits)
end
