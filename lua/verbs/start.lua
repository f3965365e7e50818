#!lua flags=allow-oom
-- start: entries a consumer was given become running jobs, each with a token of its own. Lets
-- exactly one of several entries of a member through.
-- USES  clock, run, tombstone, budget, lateness, pending, dead-letter, turn-away, let-go
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 stale
-- ARGV  1 now  2 consumer  3 bytes  4 window  5 suspects  then per entry: entry, member, due
--       now ms, '' = server time; bytes of records per call; window ms of tombstones, 0 = keep
--       none; entries ascending; suspects: jobs under which so many workers died are not started, 0
--       = all are
-- RETURN per entry {kind, ...}: run, token, attempts, failures, crashes, generation, history,
--        record | again, the same (a repeated call: nothing is counted twice) | later (not looked
--        at: too many bytes, call again) | suspect, token of its last start (a worker died under
--        it: nothing is written, start it alone) | dropped | cancelled | released (paused) | parked
--        (a record of a later version, back in 4 s) | dead letter | late (past its expiry: call
--        expire) | lost (not owned by the caller)
-- The attempt is counted before anything is parsed, so that a record that kills its reader is still
-- counted. A start that never settled loses its entry when its job goes back to scheduled: its late
-- end is then of no effect. An entry that waited for its start is young again, or it could be taken
-- over at once. An entry without a record is dropped in silence if its member is in stale: it had
-- two entries, and the other one ran.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, dead = dead,
  done = done, meta = meta, stale = stale }
local serverMs, micros = clock()
local now = tonumber(ARGV[1]) or serverMs
local consumer, bytes, window = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local suspects, count = tonumber(ARGV[5]), (#ARGV - 5) / 3

local state = redis.call('HMGET', meta, 'token', 'paused')
local first = math.max((tonumber(state[1]) or 0) + 1, micros)
local paused = state[2]
local call = { now = now, window = window, isPaused = paused }
local token, spent, gone, replies, idle = first, 0, {}, {}, {}
local from, to = ARGV[6], ARGV[#ARGV - 2]
for _, one in ipairs(redis.call('XPENDING', ready, 'workers', from, to, count + 100, consumer)) do
  idle[one[1]] = one[3]
end

local function judge(entry, member, due)
  if not (idle[entry] or isPending(ready, entry, consumer)) then return { 'lost' } end
  local record
  spent, record = readWithin(jobs, member, bytes, spent)
  if not spent then return { 'later' } end
  local known = redis.call('HGET', runs, member)
  -- Flat, and no function of its own for what most entries are: a table for each is slower
  -- (compare with `npm run bench:stages -- --against`).
  local last, generation, attempts, failures, crashes, at, owner, nextDue, cancel, asked, digest,
    history = (known or NEVER_RAN):match(RUN)
  local isMine = at == entry and owner == consumer
  local isPlain = record and record:byte() == 49 and at == '-' and cancel == '0' and not paused
  if not isPlain or redis.call('ZSCORE', scheduled, member) then
    local job = { entry = entry, member = member, due = due, record = record,
      run = runOf(known or NEVER_RAN), isNew = not known, isMine = isMine }
    local reply = turnAway(keys, call, job)
    if reply then
      gone[#gone + 1] = entry
      return reply
    end
  end
  if asked == '-' then
    asked, digest = askedOf(record), digestOf(record)
  end
  local header = not isMine and headerOf(record)
  if header and isLate(header, at, asked, nextDue, due, now) then return { 'late' } end
  local isSuspect = suspects > 0 and tonumber(crashes) >= suspects
  if isSuspect and not isMine then return { 'suspect', last } end
  -- @young-again
  if (idle[entry] or math.huge) >= 1000 then
    redis.call('XCLAIM', ready, 'workers', consumer, 0, entry, 'JUSTID')
  end
  if isMine then
    return { 'again', last, attempts, failures, crashes, generation, history, record }
  end
  if token == first then
    redis.call('HSET', meta, 'token', ('%.0f'):format(token + count))
  end
  token, last, attempts = token + 1, ('%.0f'):format(token + 1), attempts + 1
  redis.call('HSET', runs, member, startedText(last, generation, attempts, failures, crashes, entry,
    consumer, asked, digest, history))
  return { 'run', last, attempts, failures, crashes, generation, history, record }
end

for at = 6, #ARGV, 3 do
  local due = ('%.0f'):format(tonumber(ARGV[at + 2]) or now)
  replies[#replies + 1] = spent and judge(ARGV[at], ARGV[at + 1], due) or { 'later' }
end
if #gone > 0 then
  letGo(ready, unpack(gone))
end
return replies
