-- lining-up: jobs of a gated queue that have become due: they wait in line, or go straight into
-- ready where nobody waits.
-- GIVES   admit(keys, gate, list, most, gone): a list of {member, due, text}, text is the due time;
--         how many went into ready, most at the most, whose members are added to gone
-- NEEDS   group, rates, line, own, costs, keeping, sooner, lanes, opening, lent
-- RULE    In line first, then the lanes, and the score in scheduled last, which says that the job
--         waits: what a cut call leaves is a stale place and a lane that is open for nothing. The
--         priority of a job is its tag =high or =low: 0 = high, 1 = normal, 2 = low. In strict
--         order a job of a group has none, as that would be a second order, and nobody goes past
--         the line whose group somebody else has. Who has it comes back before its lanes expect it
--         where somebody has made it due sooner.
local function prioritiesOf(tags, list)
  local asked = {}
  for nth, job in ipairs(list) do
    asked[2 * nth - 1], asked[2 * nth] = '=high\0' .. job.member, '=low\0' .. job.member
  end
  return redis.call('ZMSCORE', tags, unpack(asked))
end

local function groupsOf(list)
  local names = {}
  for nth, job in ipairs(list) do
    names[nth] = groupIn(job.member)
  end
  return names
end

local function expectSooner(keys, gate, names, list)
  local kept = keptIn(keys, names)
  for _, job in ipairs(list) do
    local group = groupIn(job.member)
    if kept[group] and keeperNamed(kept[group]) == job.member then
      openSoon(keys.lanes, group, gate.now)
    end
  end
end

local function lineUp(keys, gate, list)
  local places, scores, lanes, opened, seen, timed = {}, {}, {}, {}, {}, {}
  -- @any-tags
  local tagged = redis.call('ZCARD', keys.tags) > 0 and prioritiesOf(keys.tags, list) or {}
  for nth, job in ipairs(list) do
    local group = groupIn(job.member)
    local priority = tagged[2 * nth - 1] and 0 or tagged[2 * nth] and 2 or 1
    priority = gate.isStrict and group ~= '' and 1 or priority
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
    -- @timed-lane
    local isTimed = gate.isStrict and isOpen and tonumber(isOpen) > TIMED
    timed[#timed + 1] = isTimed and lanes[nth]:sub(2) or nil
  end
  openLanes(keys, opened)
  if timed[1] then
    --@lazy
    expectSooner(keys, gate, timed, list)
  end
  -- @scheduled-last
  redis.call('ZADD', keys.scheduled, 'XX', unpack(scores))
end

local function letPast(keys, gate, list, most, gone)
  local rest, kept, words, keeper, costs = {}, {}, {}, nil, nil
  -- @turns-past
  if gate.isShut or #list > math.min(most, allowed(keys.meta, gate)) then return list end
  -- @nobody-waits
  if redis.call('ZCARD', keys.lanes) > 0 then return list end
  local free = gate.concurrency - redis.call('XLEN', keys.ready)
  -- @room-past
  if gate.concurrency > 0 and #list > free then return list end
  -- @lent-past
  if gate.names and #list > lentRoom(keys, gate) then return list end
  if gate.hasCosts then
    --@lazy
    costs = costsPast(keys, gate, list)
    if not costs then return list end
  end
  -- @rate-past
  if gate.interval > 0 then
    use(keys.meta, gate, costs and costs.sum or #list)
  end
  if gate.names then
    useLent(keys, gate, #list)
  end
  if gate.isStrict then
    --@lazy
    kept, keeper = keptIn(keys, groupsOf(list)), keeperOf
  end
  local unused = 0
  for nth, job in ipairs(list) do
    local group, cost = groupIn(job.member), costs and costs[nth] or 1
    local room, own = freeIn(keys, gate, group)
    -- @has-room
    local has = kept[group] and room > 0 and keeper(keys, gate, kept[group])
    local isOther = has and has.member ~= job.member
    if room <= 0 or isOther or own and ownTurns(gate, own) <= 0 then
      rest[#rest + 1], unused = job, unused + cost
    else
      if own then
        useOwn(keys, own, cost)
      end
      local entry = addReady(keys.ready, job.member, job.text, costWords(gate, cost))
      gate.first = gate.first or entry
      if group ~= '' then
        -- @hold-past
        redis.call('ZADD', keys.holds, 0, group .. '\0' .. entry)
        words[#words + 1], words[#words + 2] = group, job.member
      end
      gone[#gone + 1] = job.member
    end
  end
  if gate.isStrict and #words > 0 then
    redis.call('HSET', keys.order, unpack(words))
  end
  refund(keys.meta, gate, unused)
  if gate.names then
    useLent(keys, gate, -#rest)
  end
  return rest
end

local function admit(keys, gate, list, most, gone)
  local rest = letPast(keys, gate, list, most, gone)
  if #rest > 0 then
    lineUp(keys, gate, rest)
  end
  return #list - #rest
end
