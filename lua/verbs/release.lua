#!lua flags=allow-oom
-- release: entries a consumer holds and has not started go back to scheduled at their due time; no
-- attempt is used.
-- USES  clock, run, tombstone, stale, pending, nudge, group, head, let-go, digits, line, gate,
--       rates, lent, pausing, own, charge, costs, keeping, lanes, opening, yielding, leaving,
--       turns, heads, shutting, letting-through, giving-up
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake  8 stale  9 line  10 lanes
--       11 holds  12 groups  13 order  14 work
-- ARGV  1 now  2 consumer  then per entry: entry, member, due
--       now ms, '' = server time; due ms
-- RETURN one text per entry: ok | dropped (over, in scheduled, or running) | started | lost (not
--        owned by the caller)
-- A tombstone that waited for its entry enters done, so that it is swept. An earlier start that was
-- lost with its worker loses its entry here: its late end is then of no effect, and its turn of a
-- rate stays used, as its handler has run. A member that runs under another entry must not come
-- back.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local order, work = KEYS[13], KEYS[14]
local keys = { scheduled = scheduled, jobs = jobs, ready = ready, meta = meta, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, work = work, wake = wake }
local now, micros = clock(ARGV[1])
local consumer = ARGV[2]
local replies, gone, left, unused, soonest = {}, {}, {}, {}, math.huge

local function leave(entry, member, run, due, tombstone)
  gone[#gone + 1], left[#left + 1] = entry, member
  -- @has-begun
  unused[entry] = not (run and run.entry == entry)
  if tombstone then
    redis.call('ZADD', done, 'NX', now, member)
    return 'dropped'
  end
  local isElsewhere = run and run.entry ~= entry and run.entry ~= '-'
  if isElsewhere and isPending(ready, run.entry) then return 'dropped' end
  local text = ('%.0f'):format(due)
  if redis.call('ZADD', scheduled, 'NX', text, member) == 0 then return 'dropped' end
  soonest = math.min(soonest, due)
  return 'ok'
end

local function release(entry, member, due)
  local run = runOf(redis.call('HGET', runs, member))
  if not isPending(ready, entry, consumer) then return 'lost' end
  local isHere = run and run.entry == entry
  if isHere and run.owner == consumer then return 'started' end
  local tombstone, length = tombstoneOf(jobs, member)
  local reply = length == 0 and 'lost' or leave(entry, member, run, due, tombstone)
  if reply == 'dropped' then
    dropNote(stale, member)
  end
  if isHere then
    redis.call('HSET', runs, member, unboundText(run, ('%.0f'):format(due)))
  end
  return reply
end

for at = 3, #ARGV, 3 do
  replies[#replies + 1] = release(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]) or 0)
end
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'wake')
giveUp(keys, state, now, micros, gone, left, unused, 'ask')
nudge(meta, wake, soonest, state[4])
return replies
