#!lua flags=allow-oom
-- mend-gates: line, lanes and holds are made to say what scheduled and ready say. Many per call.
-- USES  clock, tombstone, nudge, digits, line, gate, own, keeping, sooner, vacancy, lanes, opening
-- KEYS  1 scheduled  2 ready  3 meta  4 wake  5 line  6 lanes  7 holds  8 groups  9 order
--       10 jobs  11 dead
-- ARGV  1 now  then per damage: kind, name
--       now ms, '' = server time; kind, name: as check-gates tells them
-- RETURN one text per damage: repaired | sound (nothing to repair)
-- Each is judged again, at this moment. A member without a place goes back to its due time, and is
-- lined up anew. Of a loose hold the lanes of its group open, and so do those of a vacant group.
local scheduled, ready, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local line, lanes, holds, groups = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local keys = { scheduled = scheduled, meta = meta, line = line, lanes = lanes, holds = holds,
  groups = groups, order = KEYS[9], jobs = KEYS[10], dead = KEYS[11] }
local now = clock(ARGV[1])
local state = redis.call('HMGET', meta, 'gates', 'gate')
local gate = gateOf(state[1], state[2], now)
local replies, mend, isMended = {}, {}, false

function mend.unheld(entry)
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  local group = found and groupIn(found[2][2]) or ''
  return group ~= '' and redis.call('ZADD', holds, 0, group .. '\0' .. entry) == 1
end

function mend.loose(hold)
  local group, entry = hold:match('^(.*)%z([^%z]*)$')
  local isThere = group and redis.call('ZSCORE', holds, hold)
  if not isThere or #redis.call('XRANGE', ready, entry, entry) > 0 then return false end
  openLanes(keys, lanesOf(line, group))
  return redis.call('ZREM', holds, hold) == 1
end

function mend.unlined(member)
  local score = redis.call('ZSCORE', scheduled, member)
  if not isWaiting(score) or placesOf(line, member, score)[1] then return false end
  redis.call('ZADD', scheduled, 'XX', dueText(score), member)
  return true
end

function mend.stale(place)
  local member, due = waiterAt(place)
  local isThere = tonumber(redis.call('ZSCORE', scheduled, member) or nil) == WAITS + due
  return not isThere and redis.call('ZREM', line, place) == 1
end

function mend.shut(lane)
  local group = lane:sub(2)
  local isOpen = isGroupFull(keys, gate, group) or redis.call('ZSCORE', lanes, lane)
  for _, one in ipairs(isOpen and {} or lanesOf(line, group)) do
    if one == lane then
      openLanes(keys, { lane })
      return true
    end
  end
  return false
end

function mend.unused(group)
  return isIdle(keys, gate, group) and redis.call('HDEL', groups, group) == 1
end

function mend.vacant(group)
  return fillVacancy(keys, gate, group)
end

function mend.spent(field)
  return dropSpent(keys, gate, field)
end

for at = 2, #ARGV, 2 do
  local isRepaired = gate and mend[ARGV[at]](ARGV[at + 1])
  replies[#replies + 1] = isRepaired and 'repaired' or 'sound'
  isMended = isMended or isRepaired
end
if isMended then
  nudge(meta, wake, now)
end
return replies
