#!lua flags=allow-oom
-- weigh: the bytes of the records of all jobs that wait or run are counted anew, a slice per call.
-- KEYS  1 scheduled  2 jobs  3 ready  4 meta  5 stale
-- ARGV  1 part  2 cursor  3 limit  4 bytes  5 count  6 mode
--       part and cursor: where to go on; scheduled and 0 = from the beginning; limit: jobs per
--       call; bytes, count: of how many jobs earlier calls have counted them; mode: note = what was
--       counted holds from the last call on; mend = the last call brings the sum that all scripts
--       keep nearer to it; look = nothing is changed
-- RETURN {part, cursor, bytes, count} for the next call; {'', '', bytes, count} when all is
--        counted; {'unlimited'} when the partition has no limits
-- No record is read, only its length, and nothing is kept of a walk but what its caller brings
-- along. An entry that stands for no job any more is left out. What is counted in one call is
-- right. During a walk of several calls jobs come, go and move on, and some are counted twice or
-- not at all: so the mean is what a walk finds, and there are as many jobs as Redis says. The sum
-- knows each change, so it is the better one where it has as many jobs as there are: then mend
-- changes it by a sixteenth at most, and a walk that a burst led astray does little harm. Where it
-- has more or fewer, somebody does not count, and what the walk has found is taken.
local scheduled, jobs, ready, meta, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local part, cursor, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local bytes, count, mode = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local state = redis.call('HMGET', meta, 'quota', 'held')
if not state[1] then return { 'unlimited' } end
local waits, entries = redis.call('ZCARD', scheduled), redis.call('XLEN', ready)
local isAll = part == 'scheduled' and cursor == '0' and waits + entries <= limit

local function add(member)
  bytes, count = bytes + redis.call('HSTRLEN', jobs, member), count + 1
end

local function countReady(from)
  local members, found = {}, redis.call('XRANGE', ready, from, '+', 'COUNT', limit)
  for nth, entry in ipairs(found) do
    members[nth] = entry[2][2]
  end
  local left = #members > 0 and redis.call('ZMSCORE', stale, unpack(members)) or {}
  for nth, member in ipairs(members) do
    -- @left
    local isLeft = left[nth] and tonumber(found[nth][1]:match('^%d+')) < tonumber(left[nth])
    if not isLeft then
      add(member)
    end
  end
  return #found == limit and '(' .. found[limit][1]
end

local function note()
  local weight, known = (state[2] or ''):match('^(%d+) (%d+)$')
  local there = waits + math.max(0, entries - redis.call('ZCARD', stale))
  local found = isAll and bytes or math.floor(bytes * there / math.max(1, count))
  if mode == 'mend' and not isAll and tonumber(known) == there then
    local most = weight / 16
    found = math.floor(weight + math.max(-most, math.min(most, found - weight)))
  end
  redis.call('HSET', meta, 'held', ('%.0f %.0f'):format(found, isAll and count or there))
end

if isAll then
  for _, member in ipairs(redis.call('ZRANGE', scheduled, 0, -1)) do
    add(member)
  end
elseif part == 'scheduled' then
  local page = redis.call('ZSCAN', scheduled, cursor, 'COUNT', limit)
  for at = 1, #page[2], 2 do
    add(page[2][at])
  end
  if page[1] == '0' then return { 'ready', '-', bytes, count } end
  return { part, page[1], bytes, count }
end
local more = countReady(isAll and '-' or cursor)
if more and not isAll then return { part, more, bytes, count } end
if mode ~= 'look' then
  note()
end
return { '', '', bytes, count }
