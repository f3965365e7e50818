#!lua flags=allow-oom
-- cancel: a job that waits is over at once; one that runs is asked to stop. Many jobs per call.
-- USES  clock, run, telling, tombstone, stale, tags, sets, digits, weight, nudge, callback,
--       end-tags, budget, line, gate, sooner, vacating, seen, named, past, stop-order, held
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta  6 stale  7 tags  8 line  9 order  10 lanes
--       11 wake  12 past  13 ended
-- ARGV  1 now  2 generation  3 window  then per job: member
--       now ms, '' = server time, and @ = the tombstone is of no call, so that the call that made
--       the job, sent again, makes another one; window ms of tombstones, 0 = keep none; member: or
--       member, a zero byte and what was seen of it, see the part seen: another job than that stays
-- RETURN one text per job: cancelled | requested (running) | over <outcome letter> | unknown |
--        changed (it is not what was seen) | held (its worker lets it go: call again) | later (not
--        looked at: too many bytes, call again); or {'moved', generation} when the partition has
--        another generation
-- The tombstone of a ready job waits for its entry, which start drops; it enters done then, so that
-- a sweep cannot take it before. A bare member that waits has no record yet, perhaps the tombstone
-- of an earlier life: it only leaves scheduled. So does a job whose cancel was cut off. A job
-- that is ready, or a bare member that was put again meanwhile, leaves an entry there, which stale
-- notes. A caller that names past keeps a history. A call ends at 640 KiB of records. A caller may
-- leave order, lanes and wake out, and then names past behind line: who has a group in strict order
-- gives it up all the same, up to a second later.
local scheduled, jobs, runs = KEYS[1], KEYS[2], KEYS[3]
local done, meta, stale, tags = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local line, order, lanes, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local past, ended, isOlder = KEYS[12], KEYS[13], #KEYS == 10
local now, _, isForgotten = clock(ARGV[1])
local generation, window = ARGV[2], tonumber(ARGV[3])
local keys = { scheduled = scheduled, jobs = jobs, meta = meta, tags = tags, order = order,
  lanes = lanes, wake = wake }

local replies, left, count, lighter, spent = {}, {}, 0, 0, 0
if isOlder then
  past, ended = order, lanes
end
local state = redis.call('HMGET', meta, 'generation', 'held', 'gates')
local current = state[1] or '0'
if current ~= generation then return { 'moved', current } end

local function leave(member, waits)
  leaveLine(line, member, waits)
  redis.call('ZREM', scheduled, member)
end

local function unknown(member, tombstone, waits)
  if not waits then return tombstone and 'over ' .. tombstone:sub(2, 2) or 'unknown' end
  redis.call('HDEL', runs, member)
  leave(member, waits)
  left[#left + 1] = member
  return 'cancelled'
end

local function request(member, run, waits)
  run.cancel = withBit(withoutBit(run.cancel, AGAIN), STOP)
  redis.call('HSET', runs, member, runText(run))
  leave(member, waits)
  orderStop(meta, run)
  return 'requested'
end

local function cancel(member, record, run, waits)
  local isAgain = waits and member:sub(1, 2) ~= 'j:'
    and tonumber(run and run.due) ~= dueOf(waits)
  if isAgain or not waits then
    noteStale(stale, member, now)
  end
  local mark = markOf(record)
  if past then
    --@lazy
    local state = run or runOf(NEVER_RAN)
    local over = { member = member, outcome = 'c', mark = mark, run = state, record = record }
    over.window = window
    keepPast(past, ended, now, { over })
  end
  if window == 0 and waits then
    redis.call('HDEL', jobs, member)
  else
    local token, attempts = run and run.token or '0', run and run.attempts or '0'
    mark = isForgotten and mark:match('^%w+') .. ' 0000000000000000' or mark
    local tombstone = tombstoneText('c', mark, token, attempts)
    -- @index-tombstone
    if waits then
      redis.call('ZADD', done, now, member)
    end
    redis.call('HSET', jobs, member, tombstone)
  end
  redis.call('HDEL', runs, member)
  endTags(keys, now, member, tagsOf(record), 'c')
  -- @unschedule
  leave(member, waits)
  left[#left + 1] = member
  tellEnd(meta, run, member, 'c')
  count, lighter = count + 1, lighter + #record
  return 'cancelled'
end

local function judge(word)
  local record
  local zero = word:find('\0', 1, true)
  local member, seen = word:sub(1, (zero or 0) - 1), zero and word:sub(zero + 1)
  spent, record = readWithin(jobs, member, 655360, spent)
  -- @later
  if not spent then return 'later' end
  local waits = redis.call('ZSCORE', scheduled, member)
  local isOver = not record or isTombstone(record)
  local run = not isOver and runOf(redis.call('HGET', runs, member))
  local isOther = seen and (waits or not isOver) and seenText(record, run, waits) ~= seen
  if isOther then return 'changed' end
  -- @held-first
  if isAhead(meta, run, now) then return 'held' end
  if isOver then return unknown(member, record, waits) end
  if run and run.owner ~= '-' then return request(member, run, waits) end
  return cancel(member, record, run, waits)
end

for at = 4, #ARGV do
  replies[#replies + 1] = spent and judge(ARGV[at]) or 'later'
end
if wake and state[3] and lettersIn(state[3]) then
  --@lazy
  for _, member in ipairs(left) do
    vacate(keys, member, now)
  end
end
if count > 0 then
  redis.call('HINCRBY', meta, 'n.cancelled', count)
  if state[2] then
    --@lazy
    reweigh(meta, -lighter, -count)
  end
end
return replies
