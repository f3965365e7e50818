-- vacancy: what is left in K:order of groups that nobody has.
-- GIVES   seenVacant(keys, gate, field, value): vacant, its keeper is over, or the dead letter that
--         held it is gone; spent, a due time that was given long ago; or nothing.
--         lookAtOrder(keys, gate, from, limit, add): a slice: how many, and where the next begins.
--         fillVacancy(keys, gate, group): a vacant one is free, or its dead letter lives again and
--         has it; whether that was to be done; dropSpent(keys, gate, field): the same of spent ones
-- NEEDS   keeping, sooner
-- RULE    A due time that was given is kept for ten minutes, should the clock go back. A dead
--         letter that lives again without a word has its group, as older processes replay it so.
local function seenVacant(keys, gate, field, value)
  if field:byte() == 32 then
    return tonumber(value) < gate.now - 600000 and 'spent' or nil
  end
  local letter = value:match('^!(%S+) ')
  if not letter then return not livesIn(keys.jobs, value) and 'vacant' or nil end
  local isThere = redis.call('XRANGE', keys.dead, letter, letter, 'COUNT', 1)[1]
  return not (gate.holdsDead and isThere) and 'vacant' or nil
end

local function lookAtOrder(keys, gate, from, limit, add)
  local next, words = unpack(redis.call('HSCAN', keys.order, from, 'COUNT', limit))
  for at = 1, #words, 2 do
    local kind = seenVacant(keys, gate, words[at], words[at + 1])
    if kind then
      add(kind, words[at])
    end
  end
  if next == '0' then return #words / 2, nil end
  return limit, next
end

local function fillVacancy(keys, gate, group)
  local value = redis.call('HGET', keys.order, group)
  if not value or seenVacant(keys, gate, group, value) ~= 'vacant' then return false end
  local member = keeperNamed(value)
  openSoon(keys.lanes, group, gate.now)
  if gate.holdsDead and livesIn(keys.jobs, member) then
    redis.call('HSET', keys.order, group, member)
  else
    redis.call('HDEL', keys.order, group)
  end
  return true
end

local function dropSpent(keys, gate, field)
  local value = redis.call('HGET', keys.order, field)
  if not value or seenVacant(keys, gate, field, value) ~= 'spent' then return false end
  return redis.call('HDEL', keys.order, field) == 1
end
