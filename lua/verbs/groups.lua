#!lua flags=no-writes
-- groups: who is in line and who runs, by group, a slice of the groups at a time.
-- USES  clock, digits, line, gate, own
-- KEYS  1 meta  2 line  3 lanes  4 holds  5 groups  6 tags
-- ARGV  1 generation  2 after  3 limit  then per group: group
--       after: the group before the slice, '' = from the beginning; limit: groups to look at;
--       group: these, and no others
-- RETURN {now, gates, gate and closing of meta or '', places of jobs without a group, then per
--        group: group, entries of ready, places of high, normal and low priority, due time of the
--        first of them or '', and what it may have: how many, us per job, burst, weight, ms of its
--        next turn and until which it is closed, how many may be pending and how many of these
--        there are, 0 = without or now, and why; '' where the queue is not gated};
--        {'moved', generation}
-- A place counts until its turn, also a stale one. A group costs as much with a million of jobs as
-- with one. Names are compared by their bytes, as Redis sorts them: Lua would ask the locale.
local meta, line, lanes, holds, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tags = KEYS[6]
local keys = { meta = meta, line = line, lanes = lanes, holds = holds, groups = groups }
local generation, after, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local state = redis.call('HMGET', meta, 'generation', 'gates', 'gate', 'closing')
if (state[1] or '0') ~= generation then return { 'moved', state[1] or '0' } end
local ungrouped = redis.call('ZLEXCOUNT', line, '-', '(\1')
local now, micros = clock()
local gate = gateOf(state[2], state[3], now, micros)
local mostPending = tonumber((state[2] or ''):match(' p(%d+)'))
local used = state[3] or ''
if gate and gate.second then
  --@lazy
  used = used .. ' ' .. (redis.call('HGET', meta, 'gate2') or '0')
end
local found = { ('%.0f'):format(now), state[2] or '', used, state[4] or '', ungrouped }

local function isBefore(one, other)
  for at = 1, math.min(#one, #other) do
    local mine, theirs = one:byte(at), other:byte(at)
    if mine ~= theirs then return mine < theirs end
  end
  return #one < #other
end

local function lineFrom(from)
  return redis.call('ZRANGE', line, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
end

local function holdFrom(from)
  return redis.call('ZRANGE', holds, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
end

local function groupAt(text)
  return text and text:match('^[^%z]*')
end

local function mayHave(group)
  if not gate then return '' end
  local own = ownOf(keys, gate, group)
  local isUsed = own.interval > 0 and turnsIn(own) <= 0
  local turn = isUsed and nextLookMs(own) or 0
  local groupClosed = own.groupClosed > now and own.groupClosed or 0
  local from, most = '=group\0j:{' .. group, mostPending and own.pending or mostPending or 0
  local there = most > 0 and redis.call('ZLEXCOUNT', tags, '[' .. from .. '}', '(' .. from .. '~')
  local text = ('%.0f %.3f %.0f %.0f %.0f %.0f %.0f %.0f'):format(own.most, own.interval,
    own.burst, own.weight, turn, groupClosed, most, there or 0)
  return text .. (groupClosed > 0 and own.why or '')
end

local place, hold

local function look(group)
  local from, last, running, since = group .. '\0', '(' .. group .. '\1', 0, math.huge
  local counts = { 0, 0, 0 }
  if groupAt(hold) == group then
    running = redis.call('ZLEXCOUNT', holds, '[' .. from, last)
    hold = holdFrom(last)
  end
  while groupAt(place) == group do
    local priority = tonumber(place:match('^[012]', #from + 1))
    if priority then
      local _, due = waiterAt(place)
      since = math.min(since, due)
      local low, high = '[' .. from .. priority, '(' .. from .. (priority + 1)
      counts[priority + 1] = redis.call('ZLEXCOUNT', line, low, high)
    end
    place = lineFrom(priority and '[' .. from .. (priority + 1) or last)
  end
  found[#found + 1], found[#found + 2] = group, running
  for priority = 1, 3 do
    found[#found + 1] = counts[priority]
  end
  found[#found + 1] = since < math.huge and ('%.0f'):format(since) or ''
  found[#found + 1] = mayHave(group)
end

for at = 4, #ARGV do
  place, hold = lineFrom('[' .. ARGV[at] .. '\0'), holdFrom('[' .. ARGV[at] .. '\0')
  look(ARGV[at])
end
if #ARGV == 3 then
  place, hold = lineFrom('(' .. after .. '\1'), holdFrom('(' .. after .. '\1')
end
while (place or hold) and limit > 0 do
  local waits, runs = groupAt(place), groupAt(hold)
  look(waits and runs and isBefore(runs, waits) and runs or waits or runs)
  limit = limit - 1
end
return found
