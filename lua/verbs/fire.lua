#!lua
-- fire: instants of a schedule become jobs, once each, and the next look is set.
-- USES  clock, tombstone, nudge
-- KEYS  1 leader  2 fires  3 fired  4 scheduled  5 jobs  6 meta  7 wake
-- ARGV  1 now  2 term  3 name  4 state  5 reached  6 look  7 overlap  8 most
--       then per job: member, record, due
--       now ms, '' = server time; term: the leader's value; state: as it was read; reached: the
--       last instant handled, '' = only the next look is set, also of a state that nobody can read;
--       look ms, '' = never again, sooner while a job waits unless there are no jobs in the call
--       either, and after an arm; overlap allow | skip | queue | replace; most jobs ever, 0 = any;
--       due ms
-- RETURN {fired, now, state, then per job ok | already | skipped | waiting | ended}, {'fenced'}
--        when the term is not the leader's, {'passed', now, state} when it was fired or armed
--        since, or {'early', now} when an instant is still to come, or {'postponed', now} when only
--        the look was set
-- State: reached runs skipped waiting last armed, waiting and last members or -. It changes with
-- every call that fires, so a call that is sent twice fires once; and an id that is known, live or
-- over, is never scheduled again.
-- The look may have been at a definition that is being replaced, by a call that dies before it arms
-- again: within a minute of armed no look is the last one, and the next is a minute after it at the
-- latest.
-- Jobs first, the state last: a call that was cut off finds its own jobs. No allow-oom: a full
-- Redis refuses it up front.
local leader, fires, fired, scheduled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local jobs, meta, wake = KEYS[5], KEYS[6], KEYS[7]
local now, term, name, expected = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local reached, look = tonumber(ARGV[5]), tonumber(ARGV[6])
local overlap, most = ARGV[7], tonumber(ARGV[8])
if redis.call('GET', leader) ~= term then return { 'fenced' } end
local state = redis.call('HGET', fired, name)
if not state then return { 'passed', now, '' } end
local pattern = '^(%d+) (%d+) (%d+) ([!-~]+) ([!-~]+) (%d+)$'
local before, runs, skipped, waiting, last, armed = state:match(pattern)
if not reached and (state == expected or not before) then
  redis.call('ZADD', fires, ('%.0f'):format(look), name)
  return { 'postponed', now }
end
if state ~= expected or not reached or not before then return { 'passed', now, state } end
if reached > math.max(now, tonumber(before)) then return { 'early', now } end
runs, skipped = tonumber(runs), tonumber(skipped)

local function isLive(member)
  local tombstone, length = tombstoneOf(jobs, member)
  return length > 0 and not tombstone
end

local function place(member)
  if redis.call('HSTRLEN', jobs, member) > 0 then return 'already' end
  if most > 0 and runs >= most then return 'ended' end
  if overlap == 'allow' or last == '-' or not isLive(last) then return 'ok' end
  local isTaken = overlap == 'queue' and waiting ~= '-' and waiting ~= member
  return (overlap == 'skip' or isTaken) and 'skipped' or 'waiting'
end

local replies, added, soonest = { 'fired', now, '' }, 0, math.huge
for at = 9, #ARGV, 3 do
  local member, due = ARGV[at], tonumber(ARGV[at + 2])
  local reply = place(member)
  if reply == 'ok' then
    redis.call('ZADD', scheduled, ('%.0f'):format(due), member)
    redis.call('HSET', jobs, member, ARGV[at + 1])
    added, runs, soonest = added + 1, runs + 1, math.min(soonest, due)
  end
  if reply == 'ok' or reply == 'already' then
    last = member
  end
  if reply == 'skipped' or reply == 'waiting' and waiting ~= '-' and waiting ~= member then
    skipped = skipped + 1
  end
  if reply == 'waiting' or waiting == member then
    waiting = reply == 'waiting' and member or '-'
  end
  replies[#replies + 1] = reply
end
if added > 0 then
  redis.call('HINCRBY', meta, 'n.scheduled', added)
end
replies[3] = ('%.0f %d %d %s %s %s'):format(reached, runs, skipped, waiting, last, armed)
redis.call('HSET', fired, name, replies[3])
if waiting ~= '-' and (look or #ARGV > 8) then
  look = math.min(look or math.huge, now + 500)
end
local fresh = math.abs(now - armed) < 60000
if fresh then
  look = math.min(look or math.huge, armed + 60000)
end
local isLast = not fresh and waiting == '-' and most > 0 and runs >= most
if not look or isLast then
  redis.call('ZREM', fires, name)
else
  redis.call('ZADD', fires, ('%.0f'):format(look), name)
end
nudge(meta, wake, soonest)
return replies
