#!lua flags=allow-oom
-- sweep: tombstones that left the done window, dead letters past their retention, old notes and old
-- history go, and tags whose end has come are closed no longer, a bounded batch per call.
-- USES  clock, log-lines, sweep-lines, tombstone, open-tags, sweep-past
-- KEYS  1 leader  2 jobs  3 done  4 dead  5 meta  6 ready  7 stale  8 closed  9 why
--       10 logs  11 past  12 ended
-- ARGV  1 now  2 term  3 limit  4 window  5 tombstones  6 floor  7 retention  8 deadLetters
--       9 keep  10 most
--       now ms, '' = server time; term: the leader's; limit per call; window ms and count of
--       tombstones; floor ms: no tombstone younger than this goes because of the count; retention
--       ms and count of dead letters; keep ms and most: records of past, which a caller names that
--       keeps a history, or did
-- RETURN {tombstones removed, dead letters removed, 1 = a bound ended the call and there may be
--        more, else 0, records of past removed}; {-1, 0, 0} when the term is not the leader's
-- The floor is the time within which a call may be repeated: a tombstone that went sooner would let
-- the same call run twice. What goes by the count is told in meta: `evicted` is the age of the
-- youngest, in ms, and when that was; it is forgotten after a window. Only tombstones are deleted:
-- a member whose field is a record again (a new life) only leaves the index.
-- Members are read twenty at a time and dead letters one by one, 256 KiB of each per call; the
-- first young dead letter ends it. A note of a stale entry goes with its entry; should there be
-- more notes than ready has entries, the oldest that are too many go here.
local leader, jobs, done, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local meta, ready, stale, closed, why = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local logs, past, ended = KEYS[10], KEYS[11], KEYS[12]
local keys = { meta = meta, closed = closed, why = why, jobs = jobs, dead = dead, logs = logs }
local now, term, limit = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local window, tombstones, floor = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local retention, deadLetters = tonumber(ARGV[7]), tonumber(ARGV[8])
local keep, most = tonumber(ARGV[9]), tonumber(ARGV[10])
if redis.call('GET', leader) ~= term then return { -1, 0, 0 } end

local function endedBefore(ms)
  return redis.call('ZCOUNT', done, '-inf', ('(%.0f'):format(ms))
end

local left = endedBefore(now - window)
local ripe = math.max(left, endedBefore(now - floor))
local count = math.max(left, math.min(redis.call('ZCARD', done) - tombstones, ripe))
local old, over, bytes = {}, {}, 0
while #old < math.min(count, limit) and bytes < 262144 do
  local step = redis.call('ZRANGE', done, #old, math.min(#old + 20, count, limit) - 1)
  for index, value in ipairs(redis.call('HMGET', jobs, unpack(step))) do
    old[#old + 1], bytes = step[index], bytes + #step[index] + (value and #value or 0)
    over[#over + 1] = isTombstone(value) and step[index] or nil
  end
end

local state = redis.call('HMGET', meta, 'evicted', 'closed', 'logs')
keys.logs = state[3] and logs
local age, told = (state[1] or ''):match('^(%d+) (%d+)$')
local fresh = told and tonumber(told) >= now - window
local youngest = #old > left and now - redis.call('ZSCORE', done, old[#old])
if tombstones > 0 and youngest and not (fresh and tonumber(age) <= youngest) then
  redis.call('HSET', meta, 'evicted', ('%.0f %.0f'):format(youngest, now))
elseif told and not fresh then
  redis.call('HDEL', meta, 'evicted')
end
-- @drop-tombstones
if #over > 0 then
  dropLines(keys.logs, over)
  redis.call('HDEL', jobs, unpack(over))
end
if #old > 0 then
  redis.call('ZREM', done, unpack(old))
end

local forgotten, from, read, open = {}, '-', 0, true
local excess = redis.call('XLEN', dead) - deadLetters
while open and #forgotten < math.min(limit, 100) and read < 262144 do
  local oldest = redis.call('XRANGE', dead, from, '+', 'COUNT', 1)[1]
  local ms = oldest and tonumber(oldest[1]:match('^%d+'))
  open = ms and (#forgotten < excess or ms < now - retention)
  if open then
    forgotten[#forgotten + 1], from = oldest[1], '(' .. oldest[1]
    for _, text in ipairs(oldest[2]) do
      read = read + #text
    end
  end
end
if #forgotten > 0 then
  dropDeadLines(keys.logs, forgotten)
  redis.call('XDEL', dead, unpack(forgotten))
  redis.call('HINCRBY', meta, 'n.forgotten', #forgotten)
end

local surplus = redis.call('ZCARD', stale) - redis.call('XLEN', ready)
if surplus > 0 then
  -- @drop-surplus
  redis.call('ZREM', stale, unpack(redis.call('ZRANGE', stale, 0, math.min(surplus, limit) - 1)))
end
local dropped, isLeft, isClosed = 0, false, false
if state[2] then
  --@lazy
  isClosed = sweepTags(keys, now, limit)
end
if state[3] then
  --@lazy
  sweepLines(keys, state[3])
end
if past then
  dropped, isLeft = sweepPast(past, ended, now, keep, most, limit)
end
-- @more
local isMore = #old < count or open or surplus > limit or isLeft or isClosed
return { #old, #forgotten, isMore and 1 or 0, dropped }
