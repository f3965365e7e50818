#!lua flags=no-writes
-- check-members: looks whether every member has all that belongs to it, in a whole partition at one moment or a slice at a time.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta
-- ARGV  1 part  2 cursor  3 limit
--       part all | jobs | runs | scheduled; cursor 0 = from the beginning; limit: things to look at, for all: the most
--       there may be
-- RETURN {cursor, 0 = the end; looked; records; surplus; then per finding: kind, member, detail}; {'large', size} when
--        all is too much: more things than the limit, or more than 1 MiB
-- Kinds: orphan, a record in no index, and its owner or '-' · tombstone, in no index · unrecorded, scheduled, 'tombstone' or '' ·
-- idle, a run without a record · ahead, a run that cannot be · shared, a run whose entry another holds, and who.
-- When ready holds more than the limit, an orphan or a tombstone may still be in it. A surplus above 0: somebody must be lost.
-- A value of more than 300 bytes is no tombstone, so big records are not read where their size says enough. A walk through
-- the hash reads them all, so it takes as few at a time as the largest so far lets expect, and a slice ends at 1 MiB.
local scheduled, jobs, runs, ready, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local part, cursor, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stored, waits, entries = redis.call('HLEN', jobs), redis.call('ZCARD', scheduled), redis.call('XLEN', ready)
local size = stored + waits + entries + redis.call('HLEN', runs)
if part == 'all' and size > limit then return { 'large', size } end
local found, looked, bytes, largest, live, seen, waiting, look, grouped = { '0', 0, 0, 0 }, 0, 0, 1048576, 0, {}, {}, {}, false
local token = tonumber(redis.call('HGET', meta, 'token') or 0)
for _, group in ipairs(entries > 0 and redis.call('XINFO', 'GROUPS', ready) or {}) do grouped = grouped or group[2] == 'workers' end
if entries <= limit then for _, one in ipairs(redis.call('XRANGE', ready, '-', '+')) do waiting[one[2][2]] = true end end

local function add(...) for _, word in ipairs({ ... }) do found[#found + 1] = word end end
local function isRecord(member)
  local length = redis.call('HSTRLEN', jobs, member)
  return length > 300 or length > 0 and redis.call('HGET', jobs, member):byte() ~= 46, length
end

function look.jobs(member, value)
  local tombstone = value:byte() == 46
  if not tombstone and not seen[member] then live, seen[member] = live + 1, true end
  if waiting[member] then return end
  if tombstone then return redis.call('ZSCORE', done, member) or add('tombstone', member, '') end
  local owner = (redis.call('HGET', runs, member) or ''):match('^%d+ %d+ %d+ %d+ %d+ %S+ (%S+)')
  if not redis.call('ZSCORE', scheduled, member) then add('orphan', member, owner or '-') end
end
function look.runs(member, value)
  local last, attempts, failures, crashes, entry, owner = value:match('^(%d+) %d+ (%d+) (%d+) (%d+) (%S+) (%S+) %S+ %d %S+ %S+')
  if not isRecord(member) then add('idle', member, owner or '-') end
  if not last or tonumber(last) > token or math.max(failures, crashes) > tonumber(attempts) then add('ahead', member, '') end
  if not grouped or not owner or owner == '-' then return end
  local holder = (redis.call('XPENDING', ready, 'workers', entry, entry, 1)[1] or {})[2]
  if holder and holder ~= owner then add('shared', member, holder) end
end
function look.scheduled(member)
  local is, length = isRecord(member)
  if member:sub(1, 2) == 'j:' and not is then add('unrecorded', member, length == 0 and '' or 'tombstone') end
end

for _, name in ipairs(part == 'all' and { 'jobs', 'runs', 'scheduled' } or { part }) do
  repeat
    local count = math.max(1, math.min(20, math.floor((1048576 - bytes) / largest)))
    local page = name == 'scheduled' and redis.call('ZSCAN', scheduled, cursor, 'COUNT', count)
      or name == 'runs' and redis.call('HSCAN', runs, cursor, 'COUNT', count) or redis.call('HSCAN', jobs, cursor, 'COUNT', count)
    for at = 1, #page[2], 2 do
      look[name](page[2][at], page[2][at + 1])
      local length = #page[2][at] + #page[2][at + 1]
      looked, bytes, largest = looked + 1, bytes + length, math.max(looked == 0 and 1 or largest, length)
    end
    cursor = page[1]
    if part == 'all' and bytes > 1048576 then return { 'large', size } end
  until cursor == '0' or part ~= 'all' and (looked >= limit or bytes > 1048576)
end
found[1], found[2], found[3], found[4] = cursor, looked, live, stored - redis.call('ZCARD', done) - waits - entries
return found
