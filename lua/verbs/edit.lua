#!lua
-- edit: a job that waits gets another record. Many jobs per call.
-- USES  run, tombstone, tags, sets, weight, budget, digits, line, seen, waiting, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 meta  5 tags  6 line  7 wake
-- ARGV  1 generation  2 bytes  then per job: member, before, record
--       bytes: largest record; before: the digest of the record from which the new one was made,
--       or all that was seen of the job, see the part seen
-- RETURN one text per job: ok | already (its record is that one) | changed (its record is another
--        than the one before, or it is not what was seen) | running | over <outcome letter> |
--        unknown | bad-record | too-large | later (not looked at: too many bytes, call again); or
--        {'moved', generation} when the partition has another generation
-- The new record has to keep what the call that made the job is known by: its asked due, and the
-- letter m of its header; and its set. The run record comes first, so that schedule knows where to
-- look for that, then new tags, and then the record, which is the commit point; old tags go after
-- it. A start whose worker was lost loses its entry, so that its late end has no effect. The due
-- time stays. A job in line whose priority changes leaves it, and is lined up anew. A call ends at
-- 640 KiB of records. No allow-oom: a full Redis refuses it up front.
local scheduled, jobs, runs, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tags, line, wake = KEYS[5], KEYS[6], KEYS[7]
local generation, bytes = ARGV[1], tonumber(ARGV[2])
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, tags = tags }

local replies, count, heavier, spent, soonest = {}, 0, 0, 0, math.huge
local state = redis.call('HMGET', meta, 'generation', 'held')
local layout = state[1] or '0'
if layout ~= generation then return { 'moved', layout } end

local function lineUpAnew(member, waits)
  leaveLine(line, member, waits)
  -- @back-to-its-due
  redis.call('ZADD', scheduled, 'XX', ('%.0f'):format(dueOf(waits)), member)
  soonest = math.min(soonest, dueOf(waits))
end

local function judge(member, before, record)
  local current
  spent, current = readWithin(jobs, member, 655360, spent)
  -- @later
  if not spent then return 'later' end
  if current == record then return 'already' end
  if not record:find('^1[0-9a-z]+[;|]') then return 'bad-record' end
  if #record > bytes then return 'too-large' end
  local refusal, waits, run, hasRecord = waitingIn(keys, member, '')
  if refusal then return refusal end
  local isAll = before:find(' ', 1, true)
  local seen = hasRecord and (isAll and seenText(current, run, waits) or digestOf(current))
  if seen ~= before then return 'changed' end
  if markOf(record) ~= markOf(current) then return 'bad-record' end
  if not run then
    redis.call('HSET', runs, member, freshRun('0', 0, '0', '-'))
  elseif run.entry ~= '-' then
    redis.call('HSET', runs, member, unboundText(run, run.due))
  end
  local text, had = tagsOf(record), tagsOf(current)
  -- @same-set
  if setIn(text or '') ~= setIn(had or '') then return 'bad-record' end
  -- @another-priority
  if isWaiting(waits) and priorityIn(text) ~= priorityIn(had) then
    lineUpAnew(member, waits)
  end
  addTags(tags, { { member = member, text = text } })
  redis.call('HSET', jobs, member, record)
  dropTags(tags, member, had, text)
  count, heavier = count + 1, heavier + #record - #current
  return 'ok'
end

for at = 3, #ARGV, 3 do
  replies[#replies + 1] = spent and judge(ARGV[at], ARGV[at + 1], ARGV[at + 2]) or 'later'
end
if count > 0 then
  redis.call('HINCRBY', meta, 'n.edited', count)
  if state[2] then
    -- rarely
    reweigh(meta, heavier, 0, state[2])
  end
end
nudge(meta, wake, soonest)
return replies
