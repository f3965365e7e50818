-- rates: all rates of a partition, one or two.
-- GIVES   ratesIn(meta, gate): one by one; allowed(meta, gate): so many turns they allow now, below
--         0 where some are owed; nextTurnMs(meta, gate): when they allow one more than now;
--         use(meta, gate, count): so many are used; keepRates(meta, gate): writes the arrivals
-- NEEDS   gate
-- RULE    Of two rates both hold, and each turn is one of both: gate2 of K:meta has the arrival of
--         the second, and is read where it is asked for, so that a queue with one rate pays nothing
--         for it. Where jobs cost more than one turn, a rate may owe any number of them, so nothing
--         is cut that is far ahead. A clock that was set back is known there by gateUsed of K:meta,
--         when turns were used last, in us: it takes the arrivals back with it, which is written
--         at once, or what is owed would stay owed until the clock is there again.
local function keepRates(meta, gate)
  local words, second = { 'gate', gateText(gate) }, gate.second
  if second and second.arrival then
    words[3], words[4] = 'gate2', ('%.2f'):format(second.arrival)
  end
  if gate.since then
    words[#words + 1], words[#words + 2] = 'gateUsed', ('%.0f'):format(gate.micros)
  end
  redis.call('HSET', meta, unpack(words))
end

local function setBack(meta, gate, back)
  local second = gate.second
  gate.arrival = math.max(0, gate.arrival - back)
  if second then
    second.arrival = math.max(0, tonumber(redis.call('HGET', meta, 'gate2') or 0) - back)
  end
  keepRates(meta, gate)
end

local function ratesIn(meta, gate)
  local second = gate.second
  if gate.hasCosts and not gate.since then
    --@lazy
    gate.since = tonumber(redis.call('HGET', meta, 'gateUsed') or 0)
    -- @clock-went-back
    if gate.since > gate.micros then
      setBack(meta, gate, gate.since - gate.micros)
    end
  end
  if not second then return { gate } end
  second.arrival = second.arrival or tonumber(redis.call('HGET', meta, 'gate2') or 0)
  return { gate, second }
end

local function allowed(meta, gate)
  local second = ratesIn(meta, gate)[2]
  return second and math.min(turnsIn(gate), turnsIn(second)) or turnsIn(gate)
end

local function nextTurnMs(meta, gate)
  local second = ratesIn(meta, gate)[2]
  local look = nextLookMs(gate)
  if second then
    --@lazy
    local other, isShut, isOtherShut = nextLookMs(second), turnsIn(gate) < 1, turnsIn(second) < 1
    -- A rate that has turns left keeps nobody.
    if isOtherShut then
      look = isShut and math.max(look, other) or other
    elseif not isShut then
      look = math.min(look, other)
    end
  end
  return look
end

local function use(meta, gate, count)
  local second = count ~= 0 and ratesIn(meta, gate)[2]
  gate.arrival = gate.arrival + count * gate.interval
  if second then
    second.arrival = math.max(0, second.arrival + count * second.interval)
  end
  keepRates(meta, gate)
end
