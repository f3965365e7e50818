-- carrying: a partition gets other rates, and what was started before counts.
-- GIVES   carriedOver(meta, before, share, now, micros): fields of K:meta that are others now, and
--         their values
-- NEEDS   gate, rates
-- RULE    As many turns as were used stay used, at the rate of now; of two rates those of the one
--         that has more. A rate that stays has its arrival. What a second rate had used that an
--         older process took away is still in gate2, and counts in its microseconds.
local function arrivalAs(rate, rates)
  local ahead = 0
  for _, one in ipairs(rates) do
    if one.interval == rate.interval then return one.arrival end
    ahead = math.max(ahead, aheadBy(rate, one.arrival - rate.micros, one.interval))
  end
  return rate.micros + ahead
end

local function carriedOver(meta, before, share, now, micros)
  local words, used = {}, redis.call('HGET', meta, 'gate')
  local old, new = gateOf(before, used, now, micros), gateOf(share, used, now, micros)
  if not (old and used) then return words end
  local rates = ratesIn(meta, old)
  if new.interval ~= 0 and new.interval ~= old.interval then
    new.arrival = arrivalAs(new, rates)
    words = { 'gate', gateText(new) }
  end
  if new.second then
    --@lazy
    local second = ratesIn(meta, new)[2]
    rates[2] = rates[2] or { arrival = second.arrival, interval = 0 }
    words[#words + 1], words[#words + 2] = 'gate2', ('%.2f'):format(arrivalAs(second, rates))
  end
  return words
end
