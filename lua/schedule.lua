#!lua
-- schedule: a job comes into being, or the same call is recognised. Many jobs per call.
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta  6 wake  7 stale
-- ARGV  1 now  2 generation  3 mode  4 horizon  5 bytes  then per job: member, record, due
--       now ms, '' = server time; generation: that of the caller's layout. With = before it the layout was read some time
--       ago, and a partition that has no generation may have been removed since: moved. With + it was read just now, and
--       the partition gets this generation. mode keep | replace; horizon ms ahead of now; bytes: largest record; due ms,
--       0 = now, or from 1e11 (the year 1973): what is less was meant in seconds
-- RETURN one text per job: ok | replaced | already <live or outcome letter> | exists <due> | running |
--        bad-due <now> | bad-member | bad-record | too-large | later (not looked at: too many bytes, call again);
--        or {'moved', generation} when the partition has another generation
-- The zset first, the record last: the record is the commit point. No allow-oom: a full Redis refuses it up front.
-- A live id is never overwritten unless mode is replace, and a running one not even then. A job that is taken out of
-- ready by its new life leaves an entry there: stale notes it, so that start does not take it for a lost record. A
-- caller of an earlier release names six keys and notes nothing.
-- What lives under an id is read only where its length can decide nothing, and a call ends at 640 KiB of what it would
-- read or hash; the first is always read. A value of more than 300 bytes is no tombstone.
local scheduled, jobs, runs, done, meta, wake, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, mode, horizon, bytes = tonumber(ARGV[1]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local state = redis.call('HMGET', meta, 'generation', 'wake')
local sign, layout = ARGV[2]:match('^([=+]?)(.*)$')
if (state[1] or sign ~= '=' and '0') ~= layout then return { 'moved', state[1] or '0' } end

local function same(tombstone, record)
  local asked, digest = tombstone:match('^%..(%w+) (%x+)')
  return asked == record:match('^1(%w+)') and digest == redis.sha1hex(record):sub(1, 16)
end

local spent, full = 0, false
local function fits(size)
  -- @spent
  full = spent > 0 and spent + size > 655360
  spent = spent + size
  return not full
end

local function judge(member, record, due)
  if not due or due ~= due or due ~= 0 and due < 1e11 or due > now + horizon then return ('bad-due %.0f'):format(now) end
  if not member:find('^j:[!-~]+$') or #member > 200 then return 'bad-member' end
  -- @record-version
  if not record:find('^1[0-9a-z]+[;|]') then return 'bad-record' end
  if #record > bytes then return 'too-large' end
  local length = redis.call('HSTRLEN', jobs, member)
  if length == 0 then return 'ok' end
  -- @alike
  local alike = length == #record
  -- @later
  if (alike or length <= 300) and not fits(#record) then return 'later' end
  local current = (alike or length <= 300) and redis.call('HGET', jobs, member) or ''
  if current:byte() == 46 then return same(current, record) and 'already ' .. current:sub(2, 2) or 'ok', true end
  if current == record then return 'already live' end
  local run = redis.call('HGET', runs, member)
  local generation, owner = (run or '0 -1 0 0 0 - - '):match('^%d+ (%S+) %d+ %d+ %d+ %S+ (%S+)')
  if mode == 'replace' then return owner == '-' and 'replaced' or 'running', false, run and tonumber(generation) end
  local score = tonumber(redis.call('ZSCORE', scheduled, member))
  -- @exists-later
  if not score and current == '' and not fits(length) then return 'later' end
  -- @exists-read
  if not score and current == '' then current = redis.call('HGET', jobs, member) end
  return ('exists %.0f'):format(score or tonumber(current:match('^%d(%w+)') or '0', 36))
end

local replies, added, soonest = {}, 0, math.huge
for at = 6, #ARGV, 3 do
  local member, record, due = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local reply, over, generation = 'later', false, nil
  if not full then reply, over, generation = judge(member, record, due) end
  if reply == 'ok' or reply == 'replaced' then
    local wasReady = reply == 'replaced' and not redis.call('ZSCORE', scheduled, member) or over and not redis.call('ZSCORE', done, member)
    if wasReady and stale then redis.call('ZADD', stale, ('%.0f'):format(now), member) end
    -- @index-job
    redis.call('ZADD', scheduled, ('%.0f'):format(due), member)
    if generation then redis.call('HSET', runs, member, ('0 %d 0 0 0 - - - 0 - -'):format(generation + 1)) end
    -- @keep-record
    redis.call('HSET', jobs, member, record)
    if over then redis.call('ZREM', done, member) end
    if reply == 'ok' then added = added + 1 end
    soonest = math.min(soonest, due)
  end
  replies[#replies + 1] = reply
end
if added > 0 then redis.call('HINCRBY', meta, 'n.scheduled', added) end
if sign == '+' and not state[1] then redis.call('HSET', meta, 'generation', layout) end
if soonest < (tonumber(state[2]) or -1) then
  redis.call('HSET', meta, 'wake', ('%.0f'):format(soonest))
  redis.call('SPUBLISH', wake, ('%.0f'):format(soonest))
end
return replies
