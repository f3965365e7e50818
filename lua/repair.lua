#!lua flags=allow-oom
-- repair: what has lost a part gets it back, if that is provably safe at this moment. Many per call.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake
-- ARGV  1 now  2 seen  3 bytes  then per damage: kind, name
--       now ms, '' = server time; seen: the caller has read ready up to this entry and found no orphan or tombstone there,
--       '-' = nothing; bytes of records per call; name: member, or entry of a stuck one
-- RETURN one text per damage: repaired | sound (nothing to repair) | unsure (ready has grown by too much since it was seen) |
--        later (not looked at: too many bytes, call again)
-- An orphan is scheduled at the latest of now, its next due and its asked due: never early. If somebody ran it, that
-- start loses its entry and its late end is of no effect. A stuck entry of a running job goes back to its owner, any
-- other to the end of ready, where start lets one entry of a member through; when its job is over it goes.
-- Only an orphan's record is read, for its due; the first always. A value of more than 300 bytes is no tombstone.
local scheduled, jobs, runs, ready, done, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, bytes, replies, count, soonest, waiting, repair = tonumber(ARGV[1]), tonumber(ARGV[3]), {}, 0, math.huge, {}, {}
local size, full = 0, false
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local exists, grouped, delivered = redis.call('EXISTS', ready) == 1, false, '0-0'
for _, group in ipairs(exists and redis.call('XINFO', 'GROUPS', ready) or {}) do
  if group[2] == 'workers' then grouped, delivered = true, group[8] end
end
local newer = redis.call('XRANGE', ready, ARGV[2] == '-' and '-' or '(' .. ARGV[2], '+', 'COUNT', 1000)
for _, one in ipairs(newer) do waiting[one[2][2]] = true end
local function isPending(entry) return grouped and #redis.call('XPENDING', ready, 'workers', entry, entry, 1) > 0 end
local function number(entry) local ms, sequence = entry:match('^(%d+)-(%d+)$') return tonumber(ms) or 0, tonumber(sequence) or 0 end
local function isTombstone(member)
  local length = redis.call('HSTRLEN', jobs, member)
  return length > 0 and length <= 300 and redis.call('HGET', jobs, member):byte() == 46
end

function repair.orphan(member)
  local length = redis.call('HSTRLEN', jobs, member)
  full = size > 0 and size + length > bytes
  if full then return 'later' end
  size = size + length
  local record, run = redis.call('HGET', jobs, member) or '.', redis.call('HGET', runs, member) or ''
  local head, here, due, rest = run:match('^(%d+ %d+ %d+ %d+ %d+) (%S+) %S+ (%S+) (.*)$')
  if record:byte() == 46 or waiting[member] or redis.call('ZSCORE', scheduled, member) then return 'sound' end
  if here and here ~= '-' and redis.call('XRANGE', ready, here, here)[1] then return 'sound' end
  if #newer == 1000 then return 'unsure' end
  due = math.max(now, tonumber(due or '') or tonumber(record:match('^%d(%w+)') or '0', 36))
  redis.call('ZADD', scheduled, 'NX', ('%.0f'):format(due), member)
  if head then redis.call('HSET', runs, member, ('%s - - %.0f %s'):format(head, due, rest)) end
  soonest = math.min(soonest, due)
end
function repair.tombstone(member)
  if not isTombstone(member) or waiting[member] or redis.call('ZSCORE', done, member) then return 'sound' end
  if #newer == 1000 then return 'unsure' end
  redis.call('ZADD', done, 'NX', now, member)
end
function repair.idle(member)
  local run = redis.call('HGET', runs, member)
  if not run or redis.call('HSTRLEN', jobs, member) > 0 and not isTombstone(member) then return 'sound' end
  if isPending(run:match('^%d+ %d+ %d+ %d+ %d+ (%d+%-%d+) ') or '0-0') then return 'sound' end
  redis.call('HDEL', runs, member)
end
function repair.stuck(entry)
  local found, ms, sequence = redis.call('XRANGE', ready, entry, entry)[1], number(entry)
  local lastMs, last = number(delivered)
  if not found or isPending(entry) or ms > lastMs or ms == lastMs and sequence > last then return 'sound' end
  local member = found[2][2]
  local here, owner = (redis.call('HGET', runs, member) or ''):match('^%d+ %d+ %d+ %d+ %d+ (%S+) (%S+)')
  if here == entry and owner ~= '-' then return #redis.call('XCLAIM', ready, 'workers', owner, 0, entry, 'FORCE', 'JUSTID') == 0 and 'sound' or nil end
  if isTombstone(member) then redis.call('ZADD', done, 'NX', now, member)
  else redis.call('XADD', ready, '*', unpack(found[2])) end
  redis.call('XDEL', ready, entry)
end
function repair.group()
  if not exists or grouped then return 'sound' end
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0')
end

for at = 4, #ARGV, 2 do
  local reply = full and 'later' or repair[ARGV[at]](ARGV[at + 1])
  replies[#replies + 1], count = reply or 'repaired', count + (reply and 0 or 1)
end
if count > 0 then redis.call('HINCRBY', meta, 'n.mended', count) end
if soonest < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
  redis.call('HSET', meta, 'wake', ('%.0f'):format(soonest))
  redis.call('SPUBLISH', wake, ('%.0f'):format(soonest))
end
return replies
