#!lua flags=no-writes
-- groups: who is in line and who runs, by group, a slice of the groups at a time.
-- USES  clock, digits, line, gate, own
-- KEYS  1 meta  2 line  3 lanes  4 holds  5 groups
-- ARGV  1 generation  2 after  3 limit  then per group: group
--       after: the group before the slice, '' = from the beginning; limit: groups to look at;
--       group: these, and no others
-- RETURN {now, gates, gate and closing of meta or '', places of jobs without a group, then per
--        group: group, entries of ready, places of high, normal and low priority, due time of the
--        first of them or '', and what it may have: how many, us per job, burst, weight, ms of its
--        next turn and until which it is closed, 0 = without or now, and why; '' where the queue is
--        not gated}; {'moved', generation}
-- A place counts until its turn, also a stale one. A group costs as much with a million of jobs as
-- with one. Names are compared by their bytes, as Redis sorts them: Lua would ask the locale.
local meta, line, lanes, holds, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local keys = { meta = meta, line = line, lanes = lanes, holds = holds, groups = groups }
local generation, after, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local state = redis.call('HMGET', meta, 'generation', 'gates', 'gate', 'closing')
if (state[1] or '0') ~= generation then return { 'moved', state[1] or '0' } end
local ungrouped = redis.call('ZLEXCOUNT', line, '-', '(\1')
local now, micros = clock()
local gate = gateOf(state[2], state[3], now, micros)
local found = { ('%.0f'):format(now), state[2] or '', state[3] or '', state[4] or '', ungrouped }

local function isBefore(one, other)
  for at = 1, math.min(#one, #other) do
    local mine, theirs = one:byte(at), other:byte(at)
    if mine ~= theirs then return mine < theirs end
  end
  return #one < #other
end

local function groupAfter(group)
  local from = '(' .. group .. '\1'
  local place = redis.call('ZRANGE', line, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  local hold = redis.call('ZRANGE', holds, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  local first = place and hold and isBefore(hold, place) and hold or place or hold
  return first and first:match('^[^%z]*')
end

local function mayHave(group)
  if not gate then return '' end
  local own = ownOf(keys, gate, group)
  local isUsed = own.interval > 0 and turnsIn(own) <= 0
  local turn, closed = isUsed and nextLookMs(own) or 0, own.closed > now and own.closed or 0
  local text = ('%.0f %.3f %.0f %.0f %.0f %.0f'):format(own.most, own.interval, own.burst,
    own.weight, turn, closed)
  return text .. (closed > 0 and own.why or '')
end

local function look(group)
  local from, since = group .. '\0', math.huge
  found[#found + 1] = group
  found[#found + 1] = redis.call('ZLEXCOUNT', holds, '[' .. from, '(' .. group .. '\1')
  for class = 0, 2 do
    local low, high = '[' .. from .. class, '(' .. from .. (class + 1)
    local head = redis.call('ZRANGE', line, low, high, 'BYLEX', 'LIMIT', 0, 1)[1]
    if head then
      local _, due = waiterAt(head)
      since = math.min(since, due)
    end
    found[#found + 1] = head and redis.call('ZLEXCOUNT', line, low, high) or 0
  end
  found[#found + 1] = since < math.huge and ('%.0f'):format(since) or ''
  found[#found + 1] = mayHave(group)
end

for at = 4, #ARGV do
  look(ARGV[at])
end
local group = #ARGV == 3 and groupAfter(after)
while group and limit > 0 do
  look(group)
  limit, group = limit - 1, groupAfter(group)
end
return found
