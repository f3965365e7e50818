#!lua flags=no-writes
-- check-gates: looks whether line, lanes and holds of a gated queue say what scheduled and ready
-- say, a slice at a time.
-- USES  clock, tombstone, digits, line, gate, own, keeping, sooner, vacancy, lanes, place
-- KEYS  1 scheduled  2 ready  3 meta  4 line  5 lanes  6 holds  7 groups  8 order  9 jobs  10 dead
-- ARGV  1 part  2 cursor  3 limit
--       part entries | holds | waiting | places | lanes | groups | order; cursor '' = from the
--       beginning; limit: things to look at
-- RETURN {cursor, '' = the end; looked; then per finding: kind, name}; {'', 0} where the queue is
--        not gated
-- Kinds: unheld, an entry of ready of a group that has no hold of it; loose, a hold without an
-- entry; unlined, a member that waits and has no place in line; stale, a place whose member does
-- not wait there; shut, a lane that is not open although somebody is in it and its group is not
-- full; unused, a group whose rate has no turn outstanding, and that is closed no longer; vacant, a
-- group in strict order that is kept by a job that is over; spent, a due time that was given there.
local scheduled, ready, meta = KEYS[1], KEYS[2], KEYS[3]
local line, lanes, holds, groups = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local keys = { scheduled = scheduled, meta = meta, line = line, lanes = lanes, holds = holds,
  groups = groups, order = KEYS[8], jobs = KEYS[9], dead = KEYS[10] }
local part, cursor, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local state = redis.call('HMGET', meta, 'gates', 'gate')
local gate = gateOf(state[1], state[2], clock())
if not gate then return { '', 0 } end
local after, from = cursor == '' and '-' or '(' .. cursor, cursor == '' and '0' or cursor
local found, looked, look = { '', 0 }, 0, {}

local function add(kind, name)
  found[#found + 1], found[#found + 2] = kind, name
end

function look.entries()
  local entries = redis.call('XRANGE', ready, after, '+', 'COUNT', limit)
  local names, asked = {}, {}
  for _, one in ipairs(entries) do
    local group = groupIn(one[2][2])
    if group ~= '' then
      names[#names + 1], asked[#asked + 1] = one[1], group .. '\0' .. one[1]
    end
  end
  local scores = #asked > 0 and redis.call('ZMSCORE', holds, unpack(asked)) or {}
  for nth, score in ipairs(scores) do
    if not score then
      add('unheld', names[nth])
    end
  end
  return #entries, #entries > 0 and entries[#entries][1]
end

function look.holds()
  local page = redis.call('ZRANGE', holds, after, '+', 'BYLEX', 'LIMIT', 0, limit)
  for _, hold in ipairs(page) do
    local entry = hold:match('%z([^%z]*)$')
    if #redis.call('XRANGE', ready, entry, entry) == 0 then
      add('loose', hold)
    end
  end
  return #page, page[#page]
end

function look.waiting()
  -- Who is mended leaves these scores, so a number of members is no cursor.
  local score, last = cursor:match('^(%S+) (.*)$')
  local from = score and firstBehind(scheduled, score, last)
    or redis.call('ZCOUNT', scheduled, '-inf', ('(%.0f'):format(WAITS))
  local words = redis.call('ZRANGE', scheduled, from, from + limit - 1, 'WITHSCORES')
  local members, asked = {}, {}
  for at = 1, #words, 2 do
    local member, score = words[at], words[at + 1]
    if isWaiting(score) then
      members[#members + 1] = member
      for _, place in ipairs(allPlaces(member, score)) do
        asked[#asked + 1] = place
      end
    end
  end
  local scores = #asked > 0 and redis.call('ZMSCORE', line, unpack(asked)) or {}
  for nth, member in ipairs(members) do
    if not (scores[3 * nth - 2] or scores[3 * nth - 1] or scores[3 * nth]) then
      add('unlined', member)
    end
  end
  return #words / 2, #words > 0 and words[#words] .. ' ' .. words[#words - 1]
end

function look.places()
  local page = redis.call('ZRANGE', line, after, '+', 'BYLEX', 'LIMIT', 0, limit)
  local members, dues = {}, {}
  for nth, place in ipairs(page) do
    members[nth], dues[nth] = waiterAt(place)
  end
  local scores = #page > 0 and redis.call('ZMSCORE', scheduled, unpack(members)) or {}
  for nth, score in ipairs(scores) do
    if tonumber(score or nil) ~= WAITS + dues[nth] then
      add('stale', page[nth])
    end
  end
  return #page, page[#page]
end

function look.lanes()
  local from = cursor == '' and '-' or '(' .. cursor:sub(2) .. '\1'
  local group
  while looked < limit do
    local place = redis.call('ZRANGE', line, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not place then return looked, nil end
    group = place:sub(1, place:find('\0', 1, true) - 1)
    for _, lane in ipairs(isGroupFull(keys, gate, group) and {} or lanesOf(line, group)) do
      if not redis.call('ZSCORE', lanes, lane) then
        add('shut', lane)
      end
    end
    looked, from = looked + 1, '(' .. group .. '\1'
  end
  return looked, '=' .. group
end

function look.groups()
  local next, words = unpack(redis.call('HSCAN', groups, from, 'COUNT', limit))
  for at = 1, #words, 2 do
    local isState = words[at] ~= '' and words[at]:byte() ~= 32
    if isState and isIdle(keys, gate, words[at]) then
      add('unused', words[at])
    end
  end
  if next == '0' then return #words / 2, nil end
  return limit, next
end

function look.order()
  return lookAtOrder(keys, gate, from, limit, add)
end

local count, last = look[part]()
found[1], found[2] = count == limit and last or '', count
return found
