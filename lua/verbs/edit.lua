#!lua
-- edit: a job that waits gets another record, and another due time with it. Many jobs per call.
-- USES  clock, run, stale, tombstone, tags, sets, weight, budget, digits, line, seen,
--       stop-order, held, waiting, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 meta  5 tags  6 line  7 wake  8 stale
-- ARGV  1 now  2 generation  3 bytes  then per job: member, before, record
--       now ms, '' = server time
--       bytes: largest record; before: the digest of the record from which the new one was made,
--       or all that was seen of the job, see the part seen; after a zero byte its new due time in
--       ms, a space, and now in ms, nothing = server time. Without it the due time stays
-- RETURN one text per job: ok | already (its record is that one, and its due time) | changed (its
--        record is another than the one before, or it is not what was seen) | running |
--        held (its worker lets it go: call again) | over <outcome letter> | unknown | bad-record |
--        too-large | later (not looked at: too many bytes, call again); or {'moved', generation}
--        when the partition has another generation
-- The new record has to keep what the call that made the job is known by: its asked due, and the
-- letter m of its header; and its set. The run record comes first, so that schedule knows where to
-- look for that, then the due time and new tags, and then the record, which is the commit point;
-- old tags go after it. A call that was cut off finds the due time that it gave. A start whose
-- worker was lost loses its entry, so that its late end has no effect. A job in line whose priority
-- or due time changes leaves it, and is lined up anew; one that was in ready leaves its entry
-- there, as with reschedule. A call ends at 640 KiB of records. No allow-oom: a full Redis refuses
-- it up front.
local scheduled, jobs, runs, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tags, line, wake, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, generation, bytes = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, tags = tags,
  meta = meta }

local replies, count, heavier, spent, soonest = {}, 0, 0, 0, math.huge
local state = redis.call('HMGET', meta, 'generation', 'held')
local layout = state[1] or '0'
if layout ~= generation then return { 'moved', layout } end

local function lineUpAnew(member, waits, due)
  leaveLine(line, member, waits)
  -- @back-to-its-due
  redis.call('ZADD', scheduled, ('%.0f'):format(due), member)
  soonest = math.min(soonest, due)
end

local function split(word)
  local zero = word:find('\0', 1, true)
  if not zero then return word end
  local due, at = word:sub(zero + 1):match('^(%d+) (%d*)$')
  return word:sub(1, zero - 1), tonumber(due), at
end

local function judge(member, word, record)
  local before, due, at = split(word)
  local current
  spent, current = readWithin(jobs, member, 655360, spent)
  -- @later
  if not spent then return 'later' end
  if current == record and not due then return 'already' end
  if not record:find('^1[0-9a-z]+[;|]') then return 'bad-record' end
  if #record > bytes then return 'too-large' end
  local refusal, waits, run, hasRecord = waitingIn(keys, member, '', now)
  if refusal then return refusal end
  local isThere = due and due == dueOf(waits)
  if isThere and current == record then return 'already' end
  local isAll = before:find(' ', 1, true)
  local seen = hasRecord and (isAll and seenText(current, run, waits) or digestOf(current))
  if isThere and isAll then
    seen, before = seen and seen:match('^%S+ %S+'), before:match('^%S+ %S+')
  end
  if seen ~= before then return 'changed' end
  if markOf(record) ~= markOf(current) then return 'bad-record' end
  local next = due and ('%.0f'):format(due)
  if not run then
    redis.call('HSET', runs, member, freshRun('0', 0, '0', next or '-'))
  elseif next or run.entry ~= '-' then
    redis.call('HSET', runs, member, unboundText(run, next or run.due))
  end
  local text, had = tagsOf(record), tagsOf(current)
  -- @same-set
  if setIn(text or '') ~= setIn(had or '') then return 'bad-record' end
  -- @another-priority
  if isWaiting(waits) and priorityIn(text) ~= priorityIn(had) or due and not isThere then
    if not waits then
      noteStale(stale, member, clock(at))
    end
    lineUpAnew(member, waits, due or dueOf(waits))
  end
  addTags(tags, { { member = member, text = text } })
  redis.call('HSET', jobs, member, record)
  dropTags(tags, member, had, text)
  count, heavier = count + 1, heavier + #record - #current
  return 'ok'
end

for at = 4, #ARGV, 3 do
  replies[#replies + 1] = spent and judge(ARGV[at], ARGV[at + 1], ARGV[at + 2]) or 'later'
end
if count > 0 then
  redis.call('HINCRBY', meta, 'n.edited', count)
  if state[2] then
    --@lazy
    reweigh(meta, heavier, 0, state[2])
  end
end
nudge(meta, wake, soonest)
return replies
