#!lua flags=allow-oom
-- cancel: a job that waits is over at once; one that runs is asked to stop. Many jobs per call.
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta  6 stale
-- ARGV  1 now  2 generation  3 window  then per job: member
--       now ms, '' = server time; window ms of tombstones, 0 = keep none
-- RETURN one text per job: cancelled | requested (running) | over <outcome letter> | unknown | later (not looked at: too
--        many bytes, call again); or {'moved', generation} when the partition has another generation
-- The tombstone of a ready job waits for its entry, which start drops; it enters done then, so that a sweep cannot take it
-- before. A bare member that waits has no record yet, perhaps the tombstone of an earlier life: it only leaves scheduled. So
-- does a job whose cancel was cut off. The SHA-1 of a record takes Redis 1 ms per 256 KiB, so a call ends at 640 KiB of
-- them: a record that does not fit is not read, nor is anything after it. The first is always read. A value of up to 300
-- bytes may be a tombstone, which counts nothing. A bare member that was put again while it was ready leaves an entry there,
-- which stale notes. A caller of an earlier release names five keys and notes nothing.
local scheduled, jobs, runs, done, meta, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, window, replies, cancelled, size, full = tonumber(ARGV[1]), tonumber(ARGV[3]), {}, 0, 0, false
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= ARGV[2] then return { 'moved', current } end

local function judge(member)
  local length = redis.call('HSTRLEN', jobs, member)
  -- @fits
  local fits = size == 0 or size + length <= 655360
  local record = (fits or length <= 300) and redis.call('HGET', jobs, member)
  local tombstone = record and record:byte() == 46
  -- @not-read
  full = not fits and not tombstone and length > 0
  -- @later
  if full then return 'later' end
  size = size + (tombstone and 0 or length)
  local run = record and redis.call('HGET', runs, member)
  local head, owner, due, rest = (run or ''):match('^(%d+ %d+ %d+ %d+ %d+ %S+) (%S+) (%S+) %d (.*)$')
  local waiting = redis.call('ZSCORE', scheduled, member)
  if not record or tombstone then
    if waiting then redis.call('HDEL', runs, member) redis.call('ZREM', scheduled, member) end
    return waiting and 'cancelled' or record and 'over ' .. record:sub(2, 2) or 'unknown'
  elseif head and owner ~= '-' then
    redis.call('HSET', runs, member, head .. ' ' .. owner .. ' ' .. due .. ' 1 ' .. rest)
    redis.call('ZREM', scheduled, member)
    return 'requested'
  end
  local token, attempts = (run or '0 0 0'):match('^(%d+) %d+ (%d+)')
  local putAgain = waiting and member:sub(1, 2) ~= 'j:' and tonumber(due or '') ~= tonumber(waiting)
  if putAgain and stale then redis.call('ZADD', stale, ('%.0f'):format(now), member) end
  -- @index-tombstone
  if waiting and window > 0 then redis.call('ZADD', done, now, member) end
  if window > 0 or not waiting then
    redis.call('HSET', jobs, member, ('.c%s %s %s %s -'):format(record:match('^%d(%w+)') or '0', redis.sha1hex(record):sub(1, 16), token, attempts))
  else redis.call('HDEL', jobs, member) end
  redis.call('HDEL', runs, member)
  -- @unschedule
  redis.call('ZREM', scheduled, member)
  cancelled = cancelled + 1
  return 'cancelled'
end

for at = 4, #ARGV do replies[#replies + 1] = full and 'later' or judge(ARGV[at]) end
if cancelled > 0 then redis.call('HINCRBY', meta, 'n.cancelled', cancelled) end
return replies
