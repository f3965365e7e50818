#!lua
-- reschedule: a job that waits gets another due time. Many jobs per call.
-- USES  clock, run, tombstone, stale, budget, digits, line, seen, stop-order, held,
--       waiting, lateness, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 meta  5 wake  6 stale  7 line
-- ARGV  1 now  2 generation  3 horizon  then per job: member, due, mode, seen
--       now ms, '' = server time; horizon ms ahead of now; due ms, 0 = now, or from 1e11 (the year
--       1973); mode any | earlier | later; seen: the token of its last start as the caller saw it,
--       0 = it was never started, '' = any; or all that was seen of the job, see the part seen
-- RETURN one text per job: ok <due before, - = it was in ready> <due> | already <due> (its due time
--        is that one) | kept <due> (the mode says so) | expires <ms> (by then it would be past
--        its expiry) | ready (it is due and waits for a worker, and would be due again) | running |
--        held (its worker lets it go: call again) | over <outcome letter> | unknown | started
--        (since it was seen) | changed (it is not what was seen) | later (too many bytes of
--        records, call again) | bad-due <now>; or {'moved', generation} when the partition has
--        another generation
-- The run record first, scheduled last, which is the commit point: the same call again completes
-- what was cut off. The due time in the run record is the one that a largest lateness counts from,
-- and repair. A job that leaves ready leaves its entry there, which stale notes and start drops;
-- one whose worker was lost loses it, so that the late end of that start has no effect. Its options
-- and its attempts stay. No allow-oom: a full Redis refuses it up front.
local scheduled, jobs, runs = KEYS[1], KEYS[2], KEYS[3]
local meta, wake, stale, line = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, generation, horizon = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, meta = meta }

local replies, count, spent, soonest = {}, 0, 0, math.huge
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end

local function write(member, due, job)
  local text = ('%.0f'):format(due)
  -- It is in ready, or was when a foreign producer put it again.
  local wasReady = not job.waits or member:sub(1, 2) ~= 'j:' and job.hasRecord
    and tonumber(job.run and job.run.due) ~= dueOf(job.waits)
  if wasReady then
    noteStale(stale, member, now)
  end
  if job.hasRecord then
    local run = job.run and unboundText(job.run, text) or freshRun('0', 0, '0', text)
    redis.call('HSET', runs, member, run)
  end
  leaveLine(line, member, job.waits)
  redis.call('ZADD', scheduled, text, member)
  count, soonest = count + 1, math.min(soonest, due)
  return ('ok %s %s'):format(dueText(job.waits) or '-', text)
end

local function judge(member, asked, mode, seen)
  local isInstant = asked and (asked == 0 or asked >= 1e11) and asked <= now + horizon
  if not isInstant then return ('bad-due %.0f'):format(now) end
  local due = asked == 0 and now or asked
  local isAll = seen:find(' ', 1, true)
  local refusal, waits, run, hasRecord = waitingIn(keys, member, isAll and '' or seen, now)
  if refusal then return refusal end
  local before = dueOf(waits)
  if before == due then return ('already %.0f'):format(due) end
  -- What is due is not put back behind others by a due time that has passed too.
  local isDue = not before or before <= now
  if isDue and (due <= now or mode == 'earlier') then return 'ready' end
  local record
  -- @reads
  if isAll or hasRecord and due > now then
    spent, record = readWithin(jobs, member, 655360, spent)
    -- @later
    if not spent then return 'later' end
  end
  if isAll and seenText(hasRecord and record, run, waits) ~= seen then return 'changed' end
  -- @kept
  local stays = mode == 'earlier' and due > before or mode == 'later' and before and due < before
  if stays then return 'kept ' .. dueText(waits) end
  -- @due-later
  local expiry = due > now and expiryOf(record)
  -- @expires
  if expiry and due > expiry then return ('expires %.0f'):format(expiry) end
  return write(member, due, { waits = waits, run = run, hasRecord = hasRecord })
end

for at = 4, #ARGV, 4 do
  local due, mode, seen = tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  replies[#replies + 1] = spent and judge(ARGV[at], due, mode, seen) or 'later'
end
if count > 0 then
  redis.call('HINCRBY', meta, 'n.rescheduled', count)
end
nudge(meta, wake, soonest)
return replies
