-- letting-through: jobs that wait in line become entries of ready, in their turns.
-- GIVES   letThrough(keys, gate, count): so many at the most; how many there were, and
--         whether a bound ended the call. ringBell(keys, gate): where somebody waits and ready has
--         nothing that nobody has read, one job is let through, which wakes a worker; gate.first is
--         the first entry that this call has added
-- NEEDS   group, rates, own, costs, opening, turns, heads, shutting, lent
-- RULE    A round of 64 jobs judges all before it writes: the turns, the entries, who has a group
--         in strict order, their holds, then scheduled, the line and the lanes. An entry whose
--         member is still in scheduled was cut off, and start drops it. A call visits 200 lanes and
--         reads 1,000 places. Whoever takes a job rings the bell for the next worker. Where jobs
--         may cost more than one turn, a round is of one job, as the next one has only the turns
--         that this one leaves; each KiB of its record counts as a place that was read.
local function addThrough(keys, gate, call, heads, turns)
  local holds, members, gone, kept = {}, {}, call.gone, {}
  for _, lane in ipairs(turns) do
    local head = heads[lane]
    head.next = (head.next or 0) + 1
    local job = head.jobs[head.next]
    if job then
      local member = call.members[job]
      local due = ('%d'):format(call.dues[job])
      local entry = addReady(keys.ready, member, due, unpack(call.said))
      gate.first = gate.first or entry
      if head.group ~= '' then
        holds[#holds + 1], holds[#holds + 2] = 0, head.group .. '\0' .. entry
        kept[#kept + 1], kept[#kept + 2] = head.group, member
      end
      members[#members + 1], gone[#gone + 1] = member, call.places[job]
    end
  end
  if gate.isStrict and #kept > 0 then
    redis.call('HSET', keys.order, unpack(kept))
  end
  if #holds > 0 then
    -- @hold-through
    redis.call('ZADD', keys.holds, unpack(holds))
  end
  if #members > 0 then
    redis.call('ZREM', keys.scheduled, unpack(members))
  end
end

local function round(keys, gate, call, count)
  local found = openLanesIn(keys.lanes, count)
  if not found then return nil end
  local had, lists
  if gate.lengths ~= '-' then
    lists, had = byWeight(keys, gate, found, count)
  end
  local turns = turnsOf(lists or found, gate.clocks, count)
  local heads = headsOf(keys, gate, call, turns)
  local given = judgeHeads(keys, gate, call, heads)
  local used = given
  if gate.hasCosts and given > 0 then
    --@lazy
    local cost, size = costIn(keys, call.members[heads[1].jobs[1]])
    call.reads, call.said, used = call.reads + size / 1024, { costWords(gate, cost) }, cost
  end
  drawAlong(found, gate.clocks)
  -- @some-given
  if given > 0 then
    use(keys.meta, gate, used)
  end
  if gate.names then
    useLent(keys, gate, given)
  end
  if gate.hasOwn then
    for _, head in ipairs(heads) do
      if head.own then
        useOwn(keys, head.own, gate.hasCosts and used or #head.jobs)
      end
    end
  end
  addThrough(keys, gate, call, heads, turns)
  if #call.gone > 0 then
    redis.call('ZREM', keys.line, unpack(call.gone))
  end
  call.gone = {}
  shutOrMove(keys, gate, heads, turns, had)
  return given
end

local function letThrough(keys, gate, count)
  local room = gate.isShut and 0 or math.min(count, allowed(keys.meta, gate))
  if gate.concurrency > 0 then
    -- @queue-room
    room = math.min(room, gate.concurrency - redis.call('XLEN', keys.ready))
  end
  if gate.names then
    room = math.min(room, lentRoom(keys, gate))
  end
  local atOnce = gate.hasCosts and 1 or 64
  local given, call = 0, { visits = 0, reads = 0, stale = {}, gone = {}, said = {} }
  -- @endless-rounds
  while given < room and call.visits < 200 and call.reads < 1000 do
    local some = round(keys, gate, call, math.min(room - given, atOnce))
    if not some and not openTimed(keys, gate) then
      break
    end
    given = given + (some or 0)
    if gate.hasCosts then
      room = math.min(room, given + allowed(keys.meta, gate))
    end
  end
  -- @bounds
  return given, call.visits >= 200 or call.reads >= 1000
end

local function ringBell(keys, gate)
  if redis.call('ZCARD', keys.lanes) == 0 or undeliveredIn(keys.ready, 1) > 0 then return end
  if letThrough(keys, gate, 1) > 0 then
    redis.pcall('SPUBLISH', keys.work, '1')
  end
end
