-- shutting: what becomes of lanes that had their turns.
-- GIVES   shutOrMove(keys, gate, heads, turns, had): they go to the end, stay in front as long as
--         their weight gives them turns, are shut, or wait for a time; had is as byWeight gives it
-- NEEDS   line, own, nudge, opening
-- RULE    A lane is shut because its group is full or nobody is left, never because another lane of
--         the group was expected to fill it. One whose group has no turn of its own now, or is kept
--         by somebody who is due later, waits for that time, of which the leader is told. Lanes go
--         to the end in the order of their last turns, or the first of few would have one more in
--         every round.
local function byLastTurn(heads, turns)
  -- @one-turn-each
  if #heads == #turns then return heads end
  local list, seen = {}, {}
  for nth = #turns, 1, -1 do
    local head = heads[turns[nth]]
    if not seen[head] then
      seen[head] = true
      table.insert(list, 1, head)
    end
  end
  return list
end

local function shutOrMove(keys, gate, heads, turns, had)
  local shut, moved, words, soonest = {}, {}, {}, math.huge
  for _, head in ipairs(byLastTurn(heads, turns)) do
    local isRead = head.wanted > 0 and #head.places < head.most
    local own = had and had[head.lane]
    if isRead and not head.hasMore then
      shut[#shut + 1] = head.lane
    elseif #head.jobs >= head.free and (head.isTimed or head.opensAt) then
      local at = head.opensAt or whenMore(gate, head.own)
      words[#words + 1], words[#words + 2] = ('%.0f'):format(TIMED + at), head.lane
      soonest = math.min(soonest, at)
    elseif #head.jobs >= head.free then
      shut[#shut + 1] = head.lane
    -- @in-its-round
    elseif own and #head.jobs > 0 and own.turns + #head.jobs < own.of then
      words[#words + 1], words[#words + 2] = ('%.0f'):format(own.score + #head.jobs), head.lane
    elseif #head.jobs > 0 then
      moved[#moved + 1] = head.lane
    end
  end
  addLanes(keys, moved)
  if #words > 0 then
    redis.call('ZADD', keys.lanes, unpack(words))
  end
  if #shut > 0 then
    redis.call('ZREM', keys.lanes, unpack(shut))
  end
  -- @soonest
  if soonest < math.huge then
    nudge(keys.meta, keys.wake, soonest)
  end
end
