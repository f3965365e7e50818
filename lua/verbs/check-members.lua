#!lua flags=no-writes
-- check-members: looks whether every member has all that belongs to it, in a whole partition at one
-- moment or a slice at a time.
-- USES  run, tombstone, tags, group, tag-entries
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 tags
-- ARGV  1 part  2 cursor  3 limit
--       part all | jobs | runs | scheduled; cursor 0 = from the beginning; limit: things to look
--       at, for all: the most there may be
-- RETURN {cursor, 0 = the end; looked; records; surplus; then per finding: kind, member, detail};
--        {'large', size} when all is too much: more things than the limit, or more than 512 KiB
-- Kinds: orphan, a record in no index, and its owner or '-'; tombstone, in no index; unrecorded,
-- scheduled, 'tombstone' or ''; idle, a run without a record; ahead, a run that cannot be; shared,
-- a run whose entry another holds, and who; untagged, a record with tags that are not in the index;
-- unordered, a debounced record that does not say of which call it is, or a run with newer data of
-- a record that is not debounced; unlisted, a set that the index does not list.
-- When ready holds more than the limit, an orphan or a tombstone may still be in it. A surplus
-- above 0: somebody must be lost. Big records are not read where their size says enough. A walk
-- through the hash reads them all, so it takes as few at a time as the largest so far lets expect,
-- and a slice ends at 512 KiB. A hash is in no order: where all that were seen are small, few of
-- twice as many are large. So it takes twice as many as it has seen, from forty to a thousand.
local scheduled, jobs, runs = KEYS[1], KEYS[2], KEYS[3]
local ready, done, meta, tags = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local part, cursor, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stored, waits = redis.call('HLEN', jobs), redis.call('ZCARD', scheduled)
local entries = redis.call('XLEN', ready)
local size = stored + waits + entries
if part == 'all' then
  size = size + redis.call('HLEN', runs)
  if size > limit then return { 'large', size } end
end

local found, seen, waiting, look = { '0', 0, 0, 0 }, {}, {}, {}
local looked, live, bytes, largest = 0, 0, 0, 524288
local token, group
if part == 'all' or part == 'runs' then
  token, group = tonumber(redis.call('HGET', meta, 'token') or 0), groupOf(ready)
end
local isShort = entries > 0 and entries <= limit
for _, one in ipairs(isShort and redis.call('XRANGE', ready, '-', '+') or {}) do
  waiting[one[2][2]] = true
end

local function add(kind, member, detail)
  found[#found + 1], found[#found + 2], found[#found + 3] = kind, member, detail
end

local function isDebounced(record)
  return record:find(';d=', 1, true) and record:find('^1%w+[^|]-;d=')
end

function look.jobs(member, value, isScheduled)
  local set = member:match('^%zset%z(.*)$')
  if set and not redis.call('ZSCORE', tags, '=sets\0' .. set) then
    add('unlisted', set, '')
  end
  if member:byte() == 0 then return end
  local isOver = isTombstone(value)
  if not isOver and not seen[member] then
    live, seen[member] = live + 1, true
    noteUntagged(found, tags, member, value)
    if isDebounced(value) and not firstMark(value) then
      add('unordered', member, '')
    end
  end
  if waiting[member] or isScheduled and not isOver then return end
  if isOver and redis.call('ZSCORE', done, member) then return end
  local run = runOf(redis.call('HGET', runs, member))
  add(isOver and 'tombstone' or 'orphan', member, isOver and '' or run and run.owner or '-')
end

function look.runs(member, value)
  local tombstone, length = tombstoneOf(jobs, member)
  local run = runOf(value)
  if length == 0 or tombstone then
    add('idle', member, run and run.owner or '-')
  end
  local budgets = run and math.max(run.failures, run.crashes)
  if not run or tonumber(run.token) > token or budgets > tonumber(run.attempts) then
    add('ahead', member, '')
  end
  local isFollowed = run and hasBit(run.cancel, AGAIN)
  if isFollowed and not isDebounced(redis.call('HGET', jobs, member) or '') then
    add('unordered', member, '')
  end
  if not group or not run or run.owner == '-' then return end
  local held = redis.call('XPENDING', ready, 'workers', run.entry, run.entry, 1)[1]
  if held and held[2] ~= run.owner then
    add('shared', member, held[2])
  end
end

function look.scheduled(member)
  local tombstone, length = tombstoneOf(jobs, member)
  if member:sub(1, 2) == 'j:' and (length == 0 or tombstone) then
    add('unrecorded', member, tombstone and 'tombstone' or '')
  end
end

local function scoresOf(page)
  local members = {}
  for at = 1, #page, 2 do
    members[#members + 1] = page[at]
  end
  return #members > 0 and redis.call('ZMSCORE', scheduled, unpack(members)) or {}
end

local function pageOf(name, count)
  if name == 'scheduled' then return redis.call('ZSCAN', scheduled, cursor, 'COUNT', count) end
  if name == 'runs' then return redis.call('HSCAN', runs, cursor, 'COUNT', count) end
  return redis.call('HSCAN', jobs, cursor, 'COUNT', count)
end

for _, name in ipairs(part == 'all' and { 'jobs', 'runs', 'scheduled' } or { part }) do
  repeat
    local room = math.floor((524288 - bytes) / largest)
    local many = largest <= 1024 and math.max(40, math.min(1000, 2 * looked)) or 20
    local page = pageOf(name, math.max(1, math.min(many, room)))
    local scores = name == 'jobs' and scoresOf(page[2]) or {}
    for at = 1, #page[2], 2 do
      local member, value = page[2][at], page[2][at + 1]
      look[name](member, value, scores[(at + 1) / 2])
      largest = math.max(looked == 0 and 1 or largest, #member + #value)
      looked, bytes = looked + 1, bytes + #member + #value
    end
    cursor = page[1]
    if part == 'all' and bytes > 524288 then return { 'large', size } end
  until cursor == '0' or part ~= 'all' and (looked >= limit or bytes > 524288)
end
local sets = redis.call('ZLEXCOUNT', tags, '[=sets\0', '(=sets\1')
waits = waits + redis.call('ZCARD', done) + entries + 2 * sets
found[1], found[2], found[3], found[4] = cursor, looked, live, stored - waits
return found
