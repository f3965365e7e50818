#!lua flags=allow-oom
-- repair: what has lost a part gets it back, if that is provably safe at this moment. Many per
-- call.
-- USES  clock, run, tombstone, budget, digits, line, group, pending, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake  8 holds
-- ARGV  1 now  2 seen  3 bytes  then per damage: kind, name
--       now ms, '' = server time; seen: the caller has read ready up to this entry and found no
--       orphan or tombstone there, '-' = nothing; bytes of records per call; name: member, or entry
--       of a stuck one
-- RETURN one text per damage: repaired | sound (nothing to repair) | unsure (ready has grown by too
--        much since it was seen) | later (not looked at: too many bytes, call again)
-- An orphan is scheduled at the latest of now, its next due time and the one asked for: never
-- early. If somebody ran it, that start loses its entry and its late end is of no effect. A stuck
-- entry of a running job goes back to its owner, any other to the end of ready, where start lets
-- one entry of a member through; when its job is over it goes. Only an orphan's record is read,
-- for its due time.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, holds = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, seen, bytes = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local replies, count, spent, soonest, waiting, repair = {}, 0, 0, math.huge, {}, {}
local isThere, group = redis.call('EXISTS', ready) == 1, groupOf(ready)
local newer = redis.call('XRANGE', ready, seen == '-' and '-' or '(' .. seen, '+', 'COUNT', 1000)
for _, one in ipairs(newer) do
  waiting[one[2][2]] = true
end

local function isHeld(entry)
  return group and isPending(ready, entry)
end

local function numbered(entry)
  local ms, sequence = entry:match('^(%d+)-(%d+)$')
  return tonumber(ms) or 0, tonumber(sequence) or 0
end

function repair.orphan(member)
  local record
  spent, record = readWithin(jobs, member, bytes, spent)
  if not spent then return 'later' end
  if not record or isTombstone(record) or waiting[member] then return 'sound' end
  if redis.call('ZSCORE', scheduled, member) then return 'sound' end
  local run = runOf(redis.call('HGET', runs, member))
  local entry = run and run.entry ~= '-' and run.entry
  if entry and redis.call('XRANGE', ready, entry, entry)[1] then return 'sound' end
  if #newer == 1000 then return 'unsure' end
  local due = math.max(now, run and tonumber(run.due) or tonumber(askedOf(record), 36))
  local text = ('%.0f'):format(due)
  redis.call('ZADD', scheduled, 'NX', text, member)
  if run then
    redis.call('HSET', runs, member, unboundText(run, text))
  end
  soonest = math.min(soonest, due)
end

function repair.tombstone(member)
  if not tombstoneOf(jobs, member) or waiting[member] then return 'sound' end
  if redis.call('ZSCORE', done, member) then return 'sound' end
  if #newer == 1000 then return 'unsure' end
  redis.call('ZADD', done, 'NX', now, member)
end

function repair.idle(member)
  local text = redis.call('HGET', runs, member)
  local tombstone, length = tombstoneOf(jobs, member)
  if not text or length > 0 and not tombstone then return 'sound' end
  local run = runOf(text)
  if run and run.entry ~= '-' and isHeld(run.entry) then return 'sound' end
  redis.call('HDEL', runs, member)
end

function repair.stuck(entry)
  local found, ms, sequence = redis.call('XRANGE', ready, entry, entry)[1], numbered(entry)
  local lastMs, last = numbered(group and group.delivered or '0-0')
  if not found or isHeld(entry) or ms > lastMs then return 'sound' end
  if ms == lastMs and sequence > last then return 'sound' end
  local member, run = found[2][2], runOf(redis.call('HGET', runs, found[2][2]))
  if run and run.entry == entry and run.owner ~= '-' then
    local claim = redis.call('XCLAIM', ready, 'workers', run.owner, 0, entry, 'FORCE', 'JUSTID')
    return #claim == 0 and 'sound' or nil
  end
  if tombstoneOf(jobs, member) then
    redis.call('ZADD', done, 'NX', now, member)
  else
    local added = redis.call('XADD', ready, '*', unpack(found[2]))
    local tenant = groupIn(member)
    if tenant ~= '' and redis.call('ZSCORE', holds, tenant .. '\0' .. entry) then
      redis.call('ZADD', holds, 0, tenant .. '\0' .. added)
      redis.call('ZREM', holds, tenant .. '\0' .. entry)
    end
  end
  redis.call('XDEL', ready, entry)
end

function repair.group()
  if not isThere or group then return 'sound' end
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0')
end

for at = 4, #ARGV, 2 do
  local kind, name = ARGV[at], ARGV[at + 1]
  local reply = spent == nil and 'later' or repair[kind](name)
  replies[#replies + 1], count = reply or 'repaired', count + (reply and 0 or 1)
end
if count > 0 then
  redis.call('HINCRBY', meta, 'n.mended', count)
end
nudge(meta, wake, soonest)
return replies
