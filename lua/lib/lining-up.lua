-- lining-up: jobs of a gated queue that have become due: they wait in line, or go straight into
-- ready where nobody waits.
-- GIVES   lineUp(keys, gate, list): a list of {member, due}; letPast(keys, gate, list, most): how
--         many went into ready, and the others; without(members, list)
-- NEEDS   group, gate, line, lanes, opening
-- RULE    In line first, then the lanes, and the score in scheduled last, which says that the job
--         waits: what a cut call leaves is a stale place and a lane that is open for nothing. The
--         class of a job is its tag =high or =low.
local function lineUp(keys, gate, list)
  local places, scores, opened, asked, seen = {}, {}, {}, {}, {}
  for nth, job in ipairs(list) do
    asked[2 * nth - 1], asked[2 * nth] = '=high\0' .. job.member, '=low\0' .. job.member
  end
  local isTagged = redis.call('ZCARD', keys.tags) > 0
  local tagged = isTagged and redis.call('ZMSCORE', keys.tags, unpack(asked)) or {}
  for nth, job in ipairs(list) do
    local group = groupIn(job.member)
    local class = tagged[2 * nth - 1] and 0 or tagged[2 * nth] and 2 or 1
    places[2 * nth - 1], places[2 * nth] = 0, placeOf(group, class, job.due, job.member)
    scores[2 * nth - 1], scores[2 * nth] = ('%.0f'):format(WAITS + job.due), job.member
    local lane = class .. group
    if not seen[lane] and not isGroupFull(keys.holds, gate, group) then
      opened[#opened + 1] = lane
    end
    seen[lane] = true
  end
  redis.call('ZADD', keys.line, unpack(places))
  openLanes(keys, opened)
  redis.call('ZADD', keys.scheduled, 'XX', unpack(scores))
end

local function letPast(keys, gate, list, most)
  local free = math.min(most, turnsIn(gate))
  if gate.concurrency > 0 then
    free = math.min(free, gate.concurrency - redis.call('XLEN', keys.ready))
  end
  local isOpen = not gate.isShut and #list <= free and redis.call('ZCARD', keys.lanes) == 0
  if not isOpen then return 0, list end
  local past, rest = 0, {}
  if gate.interval > 0 then
    use(keys.meta, gate, #list)
  end
  for _, job in ipairs(list) do
    local group = groupIn(job.member)
    if isGroupFull(keys.holds, gate, group) then
      rest[#rest + 1] = job
    else
      local entry = addReady(keys.ready, job.member, ('%.0f'):format(job.due))
      if group ~= '' then
        redis.call('ZADD', keys.holds, 0, group .. '\0' .. entry)
      end
      past = past + 1
    end
  end
  refund(keys.meta, gate, #rest)
  return past, rest
end

local function without(members, list)
  local isOne, left = {}, {}
  for _, job in ipairs(list) do
    isOne[job.member] = true
  end
  for _, member in ipairs(members) do
    left[#left + 1] = not isOne[member] and member or nil
  end
  return left
end
