#!lua
-- schedule: a job comes into being, or the same call is recognised. Many jobs per call.
-- USES  clock, run, tombstone, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta  6 wake  7 stale
-- ARGV  1 now  2 generation  3 mode  4 horizon  5 bytes  then per job: member, record, due
--       now ms, '' = server time; generation: that of the caller's layout. With = before it the
--       layout was read some time ago, and a partition that has no generation may have been removed
--       since: moved. With + it was read just now, and the partition gets this generation.
--       mode keep | replace; horizon ms ahead of now; bytes: largest record; due ms, 0 = now, or
--       from 1e11 (the year 1973): what is less was meant in seconds
-- RETURN one text per job: ok | replaced | already <live or outcome letter> | exists <due> |
--        running | bad-due <now> | bad-member | bad-record | too-large | later (not looked at: too
--        many bytes, call again); or {'moved', generation} when the partition has another
--        generation
-- The zset first, the record last: the record is the commit point. No allow-oom: a full Redis
-- refuses it up front. A live id is never overwritten unless mode is replace, and a running one not
-- even then. A job that is taken out of ready by its new life leaves an entry there: stale notes
-- it, so that start does not take it for a lost record. A caller of an earlier release names six
-- keys and notes nothing.
-- What lives under an id is read only where its length can decide nothing, and a call ends at
-- 640 KiB of what it would read or hash; the first is always read. A value of more than 300 bytes
-- is no tombstone.
local scheduled, jobs, runs, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local meta, wake, stale = KEYS[5], KEYS[6], KEYS[7]
local now, sign, layout = clock(ARGV[1]), ARGV[2]:match('^([=+]?)(.*)$')
local mode, horizon, bytes = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local state = redis.call('HMGET', meta, 'generation', 'wake')
if (state[1] or sign ~= '=' and '0') ~= layout then return { 'moved', state[1] or '0' } end

local spent, full = 0, false
local function fits(size)
  -- @spent
  full, spent = spent > 0 and spent + size > 655360, spent + size
  return not full
end

local function judge(member, record, due)
  local isInstant = due and due == due and (due == 0 or due >= 1e11) and due <= now + horizon
  if not isInstant then return ('bad-due %.0f'):format(now) end
  if not member:find('^j:[!-~]+$') or #member > 200 then return 'bad-member' end
  -- @record-version
  if not record:find('^1[0-9a-z]+[;|]') then return 'bad-record' end
  if #record > bytes then return 'too-large' end
  local length = redis.call('HSTRLEN', jobs, member)
  if length == 0 then return 'ok' end
  -- @alike
  local isRead = length == #record or length <= 300
  -- @later
  if isRead and not fits(#record) then return 'later' end
  local current = isRead and redis.call('HGET', jobs, member)
  if current and current:byte() == 46 then
    local outcome, asked, digest = current:match('^%.(.)(%w+) (%x+)')
    local isSame = asked == record:match('^1(%w+)') and digest == digestOf(record)
    return isSame and 'already ' .. outcome or 'ok', true
  end
  if current == record then return 'already live' end
  if mode == 'replace' then
    local run = runOf(redis.call('HGET', runs, member))
    local isRunning = run and run.owner ~= '-'
    return isRunning and 'running' or 'replaced', false, run and tonumber(run.generation)
  end
  local scheduledFor = tonumber(redis.call('ZSCORE', scheduled, member))
  local isUnknown = not scheduledFor and not current
  -- @exists-later
  if isUnknown and not fits(length) then return 'later' end
  current = isUnknown and redis.call('HGET', jobs, member) or current
  return ('exists %.0f'):format(scheduledFor or tonumber(askedOf(current), 36))
end

local replies, added, soonest = {}, 0, math.huge
for at = 6, #ARGV, 3 do
  local member, record, due = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local reply, isOver, generation = 'later', false, nil
  if not full then
    reply, isOver, generation = judge(member, record, due)
  end
  if reply == 'ok' or reply == 'replaced' then
    local isReady = reply == 'replaced' and not redis.call('ZSCORE', scheduled, member)
      or isOver and not redis.call('ZSCORE', done, member)
    if isReady and stale then
      redis.call('ZADD', stale, ('%.0f'):format(now), member)
    end
    -- @index-job
    redis.call('ZADD', scheduled, ('%.0f'):format(due), member)
    if generation then
      redis.call('HSET', runs, member, freshRun(0, generation + 1, 0, '-'))
    end
    -- @keep-record
    redis.call('HSET', jobs, member, record)
    if isOver then
      redis.call('ZREM', done, member)
    end
    added, soonest = added + (reply == 'ok' and 1 or 0), math.min(soonest, due)
  end
  replies[#replies + 1] = reply
end
if added > 0 then
  redis.call('HINCRBY', meta, 'n.scheduled', added)
end
if sign == '+' and not state[1] then
  redis.call('HSET', meta, 'generation', layout)
end
nudge(meta, wake, soonest, state[2])
return replies
