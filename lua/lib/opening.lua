-- opening: lanes get their turns, and groups have room again.
-- GIVES   addLanes(keys, list): their turn comes last; openLanes(keys, list): the same, but lanes
--         that are open keep their turn; reopenLanes(keys, list): the same, and those that wait for
--         a time wait no longer; openTimed(keys, gate): those whose time has come open, and whether
--         any is open; nextTimed(lanes): ms when the next one opens, if one waits for a time;
--         dropHolds(keys, gate, entries, members): those of entries that are no longer in ready,
--         with the members of each; the gate is nil where any lane may be shut
-- NEEDS   line, lanes
-- RULE    The score of a lane is its priority and a number that only grows, so the lanes of one
--         come in turns. The number is a multiple of 128: the rest says how many turns a lane with
--         a weight has had of its round. Entries go first, then the lanes of their groups are
--         opened, and the holds go last: a call that is cut off leaves a hold without an entry,
--         which the leader sees, and never an entry without its hold. Only a group that was full
--         has lanes that are shut.
local function addLanes(keys, list, ...)
  if #list == 0 then return end
  local last, words = redis.call('HINCRBY', keys.meta, 'turn', #list), { ... }
  for nth, lane in ipairs(list) do
    local score = tonumber(lane:sub(1, 1)) * BAND + (last - #list + nth) * 128
    words[#words + 1], words[#words + 2] = ('%d'):format(score), lane
  end
  redis.call('ZADD', keys.lanes, unpack(words))
end

local function openLanes(keys, list)
  addLanes(keys, list, 'NX')
end

local function reopenLanes(keys, list)
  local shut = {}
  for _, lane in ipairs(list) do
    local score = tonumber(redis.call('ZSCORE', keys.lanes, lane) or nil)
    -- @waits-for-time
    shut[#shut + 1] = (not score or score >= TIMED) and lane or nil
  end
  addLanes(keys, shut)
end

local function openTimed(keys, gate)
  if redis.call('ZCARD', keys.lanes) == 0 then return false end
  local from, to = ('%.0f'):format(TIMED), ('%.0f'):format(TIMED + gate.now)
  addLanes(keys, redis.call('ZRANGEBYSCORE', keys.lanes, from, to, 'LIMIT', 0, 200))
  -- @any-open
  return tonumber(redis.call('ZRANGE', keys.lanes, 0, 0, 'WITHSCORES')[2]) < TIMED
end

local function nextTimed(lanes)
  local from = ('%.0f'):format(TIMED)
  local found = redis.call('ZRANGEBYSCORE', lanes, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2] and tonumber(found[2]) - TIMED
end

local function dropHolds(keys, gate, entries, members)
  local holds, seen, opened = {}, {}, {}
  for nth, member in ipairs(members) do
    local group = groupIn(member)
    if group ~= '' then
      holds[#holds + 1] = group .. '\0' .. entries[nth]
      local isNew = not seen[group]
      seen[group] = true
      -- @was-full
      if isNew and (not gate or gate.perGroup == 1 or isGroupFull(keys, gate, group)) then
        for _, lane in ipairs(lanesOf(keys.line, group, gate and gate.isPlain)) do
          opened[#opened + 1] = lane
        end
      end
    end
  end
  openLanes(keys, opened)
  if #holds > 0 then
    redis.call('ZREM', keys.holds, unpack(holds))
  end
end
