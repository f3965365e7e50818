-- lining-up: jobs of a gated queue that have become due: they wait in line, or go straight into
-- ready where nobody waits.
-- GIVES   admit(keys, gate, list, most, gone): a list of {member, due, text}, text is the due time;
--         how many went into ready, most at the most, whose members are added to gone
-- NEEDS   group, gate, line, own, lanes, opening
-- RULE    In line first, then the lanes, and the score in scheduled last, which says that the job
--         waits: what a cut call leaves is a stale place and a lane that is open for nothing. The
--         priority of a job is its tag =high or =low: 0 = high, 1 = normal, 2 = low.
local function prioritiesOf(tags, list)
  local asked = {}
  for nth, job in ipairs(list) do
    asked[2 * nth - 1], asked[2 * nth] = '=high\0' .. job.member, '=low\0' .. job.member
  end
  return redis.call('ZMSCORE', tags, unpack(asked))
end

local function lineUp(keys, gate, list)
  local places, scores, lanes, opened, seen = {}, {}, {}, {}, {}
  -- @any-tags
  local tagged = redis.call('ZCARD', keys.tags) > 0 and prioritiesOf(keys.tags, list) or {}
  for nth, job in ipairs(list) do
    local group = groupIn(job.member)
    local priority = tagged[2 * nth - 1] and 0 or tagged[2 * nth] and 2 or 1
    places[2 * nth - 1], places[2 * nth] = 0, placeOf(group, priority, job.due, job.member)
    scores[2 * nth - 1], scores[2 * nth] = ('%d'):format(WAITS + job.due), job.member
    local lane = priority .. group
    lanes[#lanes + 1] = not seen[lane] and lane or nil
    seen[lane] = true
  end
  -- @line-first
  redis.call('ZADD', keys.line, unpack(places))
  for nth, isOpen in ipairs(redis.call('ZMSCORE', keys.lanes, unpack(lanes))) do
    if not isOpen and not isGroupFull(keys, gate, lanes[nth]:sub(2)) then
      opened[#opened + 1] = lanes[nth]
    end
  end
  openLanes(keys, opened)
  -- @scheduled-last
  redis.call('ZADD', keys.scheduled, 'XX', unpack(scores))
end

local function letPast(keys, gate, list, most, gone)
  local rest = {}
  -- @turns-past
  if gate.isShut or #list > math.min(most, turnsIn(gate)) then return list end
  -- @nobody-waits
  if redis.call('ZCARD', keys.lanes) > 0 then return list end
  local free = gate.concurrency - redis.call('XLEN', keys.ready)
  -- @room-past
  if gate.concurrency > 0 and #list > free then return list end
  -- @rate-past
  if gate.interval > 0 then
    use(keys.meta, gate, #list)
  end
  for _, job in ipairs(list) do
    local group = groupIn(job.member)
    local room, own = freeIn(keys, gate, group)
    if room <= 0 or own and ownTurns(gate, own) <= 0 then
      rest[#rest + 1] = job
    else
      if own then
        useOwn(keys, own, 1)
      end
      local entry = addReady(keys.ready, job.member, job.text)
      gate.first = gate.first or entry
      if group ~= '' then
        -- @hold-past
        redis.call('ZADD', keys.holds, 0, group .. '\0' .. entry)
      end
      gone[#gone + 1] = job.member
    end
  end
  refund(keys.meta, gate, #rest)
  return rest
end

local function admit(keys, gate, list, most, gone)
  local rest = letPast(keys, gate, list, most, gone)
  if #rest > 0 then
    lineUp(keys, gate, rest)
  end
  return #list - #rest
end
