#!lua
-- fire: instants of schedules become jobs, once each, and their next looks are set.
-- USES  clock, tombstone, tags, overlap, nudge
-- KEYS  1 leader  2 fires  3 fired  4 scheduled  5 jobs  6 meta  7 wake  8 tags
-- ARGV  1 now  2 term  then per schedule: name, state, reached, look, overlap, most, count
--       and after each schedule its jobs, so many as count says: member, record, due
--       now ms, '' = server time; term: the leader's value; state: as it was read; reached: the
--       last instant handled, '' = only the next look is set, also of a state that nobody can read;
--       look ms, '' = never again, sooner while a job waits unless the schedule brings no jobs
--       either, and after an arm; overlap allow | skip | queue | replace; most jobs ever, 0 = any;
--       due ms
-- RETURN {'fenced'} when the term is not the leader's, else {'fired', now, then a list for each
--        schedule}: {'fired', state, then per job ok | already | skipped | waiting | ended}, or
--        {'passed'} when it was fired or armed since, or {'early'} when an instant is still to
--        come, or {'postponed'} when only the look was set
-- State: reached runs skipped waiting last armed, waiting and last members or -. It changes with
-- every call that fires, so a call that is sent twice fires once; and an id that is known, live or
-- over, is never scheduled again. Each schedule is judged by its own state: of a call that comes
-- late, those that nobody touched since are fired, and the others are left as they are.
-- The look may have been at a definition that is being replaced, by a call that dies before it arms
-- again: within a minute of armed no look is the last one, and the next is a minute after it at the
-- latest.
-- Of each schedule jobs first, the state last: a call that was cut off finds its own jobs. The
-- caller bounds jobs and bytes of a call. No allow-oom: a full Redis refuses it up front.
local leader, fires, fired, scheduled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local jobs, meta, wake, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, term = clock(ARGV[1]), ARGV[2]
if redis.call('GET', leader) ~= term then return { 'fenced' } end
local pattern = '^(%d+) (%d+) (%d+) ([!-~]+) ([!-~]+) (%d+)$'
local added, soonest = 0, math.huge

local function place(one, member, record, due)
  local reply = placeFor(jobs, one, member)
  if reply == 'ok' then
    redis.call('ZADD', scheduled, ('%.0f'):format(due), member)
    addTags(tags, meta, { { member = member, text = tagsOf(record) } })
    redis.call('HSET', jobs, member, record)
    added, one.runs, soonest = added + 1, one.runs + 1, math.min(soonest, due)
  end
  if reply == 'ok' or reply == 'already' then
    one.last = member
  end
  if reply == 'skipped' or reply == 'waiting' and one.waiting ~= '-' and one.waiting ~= member then
    one.skipped = one.skipped + 1
  end
  if reply == 'waiting' or one.waiting == member then
    one.waiting = reply == 'waiting' and member or '-'
  end
  return reply
end

local function setLook(one, name, look)
  local fresh = math.abs(now - one.armed) < 60000
  if fresh then
    look = math.min(look or math.huge, one.armed + 60000)
  end
  local isLast = not fresh and one.waiting == '-' and one.most > 0 and one.runs >= one.most
  if not look or isLast then
    redis.call('ZREM', fires, name)
  else
    redis.call('ZADD', fires, ('%.0f'):format(look), name)
  end
end

local function fire(name, expected, reached, look, overlap, most, from, to)
  local state = redis.call('HGET', fired, name)
  local before, runs, skipped, waiting, last, armed = tostring(state):match(pattern)
  if state and not reached and (state == expected or not before) then
    redis.call('ZADD', fires, ('%.0f'):format(look), name)
    return { 'postponed' }
  end
  if state ~= expected or not reached or not before then return { 'passed' } end
  if reached > math.max(now, tonumber(before)) then return { 'early' } end
  local one = { runs = tonumber(runs), skipped = tonumber(skipped), waiting = waiting, last = last }
  one.armed, one.overlap, one.most = tonumber(armed), overlap, most
  local replies = { 'fired', '' }
  for at = from, to, 3 do
    replies[#replies + 1] = place(one, ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]))
  end
  local counts = ('%.0f %d %d'):format(reached, one.runs, one.skipped)
  replies[2] = ('%s %s %s %s'):format(counts, one.waiting, one.last, armed)
  redis.call('HSET', fired, name, replies[2])
  local isWaiting = one.waiting ~= '-' and (look or to > from)
  setLook(one, name, isWaiting and math.min(look or math.huge, now + 500) or look)
  return replies
end

local replies, at = { 'fired', now }, 3
while at < #ARGV do
  local name, state, overlap = ARGV[at], ARGV[at + 1], ARGV[at + 4]
  local reached, look, most = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 5])
  local to = at + 6 + 3 * tonumber(ARGV[at + 6])
  replies[#replies + 1] = fire(name, state, reached, look, overlap, most, at + 7, to)
  at = to + 1
end
if added > 0 then
  redis.call('HINCRBY', meta, 'n.scheduled', added)
end
nudge(meta, wake, soonest)
return replies
