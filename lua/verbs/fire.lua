#!lua
-- fire: instants of schedules become jobs, once each, and their next looks are set.
-- USES  clock, tombstone, tags, weight, overlap, progress, lists, nudge
-- KEYS  1 leader  2 fires  3 fired  4 scheduled  5 jobs  6 meta  7 wake  8 tags
-- ARGV  1 now  2 term  then per schedule: name, state, reached, look, overlap, most, missed, count
--       and after each schedule its jobs, so many as count says: member, record, due
--       now ms, '' = server time; term: the leader's value; state: as it was read; reached: the
--       last instant handled, '' = only the next look is set, also of a state that nobody can read;
--       look ms, '' = never again, sooner while a job waits unless the schedule brings no jobs
--       either, and after an arm; overlap allow | skip | queue | replace; most jobs ever, 0 = any;
--       missed: so many instants that make no job are counted as skipped; due ms
-- RETURN {'fenced'} when the term is not the leader's, else {'fired', now, then a list for each
--        schedule}: {'fired', state, then per job ok | already | skipped | waiting | ended}, or
--        {'passed'} when it was fired or armed since, or {'early'} when an instant is still to
--        come, or {'postponed'} when only the look was set
-- State: reached runs skipped waiting last armed, waiting and last members or -. It changes with
-- every call that fires, so a call that is sent twice fires once; and an id that is known, live or
-- over, is never scheduled again. Each schedule is judged by its own state: of a call that comes
-- late, those that nobody touched since are fired, and the others are left as they are.
-- All are judged before anything is written. Then jobs come first, states after them and looks
-- last: a call that was cut off finds its own jobs. The caller bounds jobs and bytes of a call. No
-- allow-oom: a full Redis refuses it up front.
local leader, fires, fired, scheduled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local jobs, meta, wake, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, term = clock(ARGV[1]), ARGV[2]
if redis.call('GET', leader) ~= term then return { 'fenced' } end
if #ARGV < 3 then return { 'fired', now } end
local dues, records, tagged, states, looks, unlooked = {}, {}, {}, {}, {}, {}
local soonest, heavier, names, members, ranges, first = math.huge, 0, {}, {}, {}, 3

while first < #ARGV do
  local last = first + 7 + 3 * tonumber(ARGV[first + 7])
  put(ranges, first, last)
  names[#names + 1] = ARGV[first]
  for at = first + 8, last, 3 do
    members[#members + 1] = ARGV[at]
  end
  first = last + 1
end
local stateOf = byName(names, redis.call('HMGET', fired, unpack(names)))
local known = #members > 0 and byName(members, redis.call('HMGET', jobs, unpack(members))) or {}

local function place(one, member, record, due)
  local reply = meet(jobs, known, one, member)
  if reply == 'ok' then
    put(dues, due, member)
    put(records, member, record)
    tagged[#tagged + 1] = { member = member, text = tagsOf(record) }
    soonest, heavier = math.min(soonest, tonumber(due)), heavier + #record
  end
  return reply
end

local function fire(name, from, to)
  local expected, reached, look, overlap, most, missed = unpack(ARGV, from + 1, from + 6)
  local state, one = stateOf[name], progressOf(stateOf[name])
  look = tonumber(look)
  if state and reached == '' and (state == expected or not one) then
    put(looks, ('%.0f'):format(look), name)
    return { 'postponed' }
  end
  if state ~= expected or reached == '' or not one then return { 'passed' } end
  if tonumber(reached) > math.max(now, one.before) then return { 'early' } end
  one.overlap, one.most = overlap, tonumber(most)
  one.skipped = one.skipped + tonumber(missed)
  local replies = { 'fired', '' }
  for at = from + 8, to, 3 do
    replies[#replies + 1] = place(one, ARGV[at], ARGV[at + 1], ARGV[at + 2])
  end
  replies[2] = progressText(reached, one)
  stateOf[name] = replies[2]
  put(states, name, replies[2])
  if one.waiting ~= '-' and (look or to > from + 7) then
    look = math.min(look or math.huge, now + 500)
  end
  look = nextLook(now, one, look)
  put(look and looks or unlooked, look and ('%.0f'):format(look) or name, look and name)
  return replies
end

local replies = { 'fired', now }
for nth, name in ipairs(names) do
  replies[nth + 2] = fire(name, ranges[2 * nth - 1], ranges[2 * nth])
end
if #dues > 0 then
  redis.call('ZADD', scheduled, unpack(dues))
  addTags(tags, tagged)
  redis.call('HSET', jobs, unpack(records))
  redis.call('HINCRBY', meta, 'n.scheduled', #dues / 2)
  reweigh(meta, heavier, #dues / 2)
end
if #states > 0 then
  redis.call('HSET', fired, unpack(states))
end
if #looks > 0 then
  redis.call('ZADD', fires, unpack(looks))
end
if #unlooked > 0 then
  redis.call('ZREM', fires, unpack(unlooked))
end
nudge(meta, wake, soonest)
return replies
