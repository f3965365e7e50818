-- lent: what a partition has of limits that several queues share: turns of a rate, which end, or
-- its share of a concurrency.
-- GIVES   lentTo(meta, gate): of each limit that holds here {name, kind, epoch, seq, used, share,
--         turns}: kind r = a rate, c = a concurrency, n = nothing was lent yet; turns is a list of
--         {count, ends}; stockOf(gate, one): turns that have not ended; lentRoom(keys, gate): so
--         many may be let through by all of them; keepLent(meta, gate): writes them; useLent(keys,
--         gate, count): so many are let through; less than 0: so many of this call were not
-- RULE    The field lent of K:meta has a word for each limit. A turn is used before its entry is
--         added, so a call that is cut off has used too many. A turn that is not used after all
--         gets the soonest end there is, never a later one than it had. What nobody lent is not
--         there.
local function lentTo(meta, gate)
  if gate.lent then return gate.lent end
  local text = redis.call('HGET', meta, 'lent') or ''
  gate.lent = {}
  for name in gate.names:gmatch('[^,]+') do
    local one = { name = name, kind = 'n', epoch = 0, seq = 0, used = 0, share = 0, turns = {} }
    for word in text:gmatch('%S+') do
      local said, kind, epoch, seq, used, rest = word:match('^(.+)=(%a),(%d+):(%d+),(%d+),(.*)$')
      if said == name then
        one.kind, one.epoch, one.seq = kind, tonumber(epoch), tonumber(seq)
        one.used, one.share = tonumber(used), tonumber(rest:match('^%d+$') or 0)
      end
      for count, ends in (said == name and rest or ''):gmatch('(%d+)@(%d+)') do
        one.turns[#one.turns + 1] = { count = tonumber(count), ends = tonumber(ends) }
      end
    end
    gate.lent[#gate.lent + 1] = one
  end
  return gate.lent
end

local function stockOf(gate, one)
  local stock = 0
  for _, turn in ipairs(one.turns) do
    stock = turn.ends > gate.now and stock + turn.count or stock
  end
  return stock
end

local function lentRoom(keys, gate)
  local room = math.huge
  for _, one in ipairs(lentTo(keys.meta, gate)) do
    local free = one.kind == 'c' and one.share - redis.call('XLEN', keys.ready)
    room = math.min(room, free or stockOf(gate, one))
  end
  return room
end

local function keepLent(meta, gate)
  local words = {}
  for _, one in ipairs(gate.lent) do
    local turns = {}
    for _, turn in ipairs(one.turns) do
      if turn.count > 0 and turn.ends > gate.now then
        turns[#turns + 1] = ('%d@%.0f'):format(turn.count, turn.ends)
      end
    end
    local has = one.kind == 'c' and ('%d'):format(one.share) or table.concat(turns, '/')
    words[#words + 1] = ('%s=%s,%.0f:%.0f,%.0f,%s'):format(one.name, one.kind, one.epoch, one.seq,
      one.used, has)
  end
  redis.call('HSET', meta, 'lent', table.concat(words, ' '))
end

local function useLent(keys, gate, count)
  if count == 0 then return end
  for _, one in ipairs(lentTo(keys.meta, gate)) do
    local left = count
    for _, turn in ipairs(one.turns) do
      local isGood = turn.ends > gate.now
      local taken = isGood and math.min(left, turn.count) or 0
      turn.count, left = turn.count - taken, left - taken
    end
    one.used = math.max(0, one.used + count)
  end
  keepLent(keys.meta, gate)
end
