-- gate: how much at once. What a partition may let through, and how much of that is used.
-- GIVES   gateOf(share, used, now, micros): share and used as K:meta has them in gates and gate;
--         nothing where the queue is not gated. {interval us, burst, concurrency, perGroup, 0 =
--         without such a limit, arrival us, clocks by priority, now, micros}; isShut: nothing is
--         let through, while the limits are being set and until closed; groupInterval and
--         groupBurst, the rate of each group; lengths, of the names and beginnings that have limits
--         of their own, - = there are none; hasOwn: own has to be asked for each group; isStrict:
--         who was let through has its group until it is over, holdsDead: or as long as it is a dead
--         letter; lettersIn(share): s = strict, sh = and dead letters hold groups, or nothing;
--         needsMark(share): older processes do not know all of it; names, with commas between:
--         limits that other queues have as well, see the part lent; second: of two rates the slower
--         one. Of one rate, and of that of a group: turnsIn(gate): so many it allows now;
--         nextLookMs(gate): when it allows one more than now; aheadBy(gate, ahead, before): how far
--         the arrival is ahead, in us, where it was so far at an interval of before. Of all rates
--         of a partition: ratesIn(meta, gate): one by one; allowed(meta, gate): so many they allow
--         now; nextTurnMs(meta, gate): when they allow one more than now; use(meta, gate, count):
--         so many are used; refund(meta, gate, count): so many were used for nothing;
--         gateText(gate): what gate of K:meta keeps
-- RULE    The rate is a GCRA: arrival is when the turns that were used would have been through at
--         the rate. It may be ahead of now by what a burst and 50 ms of delay allow, and by one
--         turn more. What is ahead by more, after a step of the clock, is cut to where one turn is
--         free: whoever takes it writes the cut. Turns are used before the first entry is added, so
--         that a call that is cut off has used too many, never too few. Where a queue has more
--         partitions than a burst, each has places in time that are its own: of each interval
--         one, at its part of it. The arrival is such a place, and a turn may be used up to a burst
--         and half of the time from one place to the next, of any partition, before it. So no two
--         partitions start at once after a while without starts. Of two rates both hold, and each
--         turn is one of both: gate2 of K:meta has the arrival of the second, and is read where it
--         is asked for, so that a queue with one rate pays nothing for it.
local function lettersIn(share)
  return (share .. ' '):match(' (sh?) ')
end

local function needsMark(share)
  return lettersIn(share) ~= nil or share:find(' r%d') ~= nil or share:find(' l%w') ~= nil
end

local function takePlaces(rate, text)
  local nth, of, whole = text:match('(%d+)/(%d+)/(%d+)')
  if not nth then return end
  local apart = rate.interval / of
  rate.phase, rate.tolerance = nth * apart, 50000 + (whole - 0.5) * apart
end

local function secondOf(micros, interval, burst, places)
  local second = { interval = tonumber(interval), burst = tonumber(burst), micros = micros }
  takePlaces(second, places)
  return second
end

local function gateOf(share, used, now, micros)
  -- The share is written by `gateShare` of src/job/gate.ts, and `readShare` beside it reads it too.
  if not share then return nil end
  local interval, burst, concurrency, perGroup, more =
    share:match('^([%d.]+) (%d+) (%d+) (%d+)(.*)$')
  local arrival, high, normal, low, shut = (used or ''):match('^([%d.]+) (%d+) (%d+) (%d+) (.*)$')
  local queueClosed, groupsClosed = (shut or ''):match('^(%d+) (%d+)$')
  local gate = { interval = tonumber(interval or 0), now = now, own = {} }
  gate.burst, gate.concurrency = tonumber(burst or 1), tonumber(concurrency or 0)
  gate.perGroup, gate.arrival = tonumber(perGroup or 0), tonumber(arrival or 0)
  gate.clocks = { tonumber(high or 0), tonumber(normal or 0), tonumber(low or 0) }
  gate.micros = micros or now * 1000
  gate.queueClosed, gate.groupsClosed = tonumber(queueClosed or 0), tonumber(groupsClosed or 0)
  gate.isShut = not interval or gate.queueClosed > now
  local letters = lettersIn(share)
  gate.isStrict, gate.holdsDead = letters, letters == 'sh'
  local pace, most, lengths = (more or ''):match('^ ([%d.]+) (%d+) ([%d,-]+) ')
  gate.groupInterval, gate.groupBurst = tonumber(pace or 0), tonumber(most or 1)
  -- @has-own
  gate.lengths, gate.hasOwn = lengths or '-', lengths or gate.groupsClosed > now
  gate.names = ((more or '') .. ' '):match(' l(%S+) ')
  takePlaces(gate, (more or ''):match(' s(%d+/%d+/%d+)') or '')
  local slower, most2, places = (more or ''):match(' r([%d.]+),(%d+)(%S*)')
  if slower then
    --@lazy
    gate.second = secondOf(gate.micros, slower, most2, places)
  end
  return gate
end

local function toleranceOf(gate)
  return gate.tolerance or (gate.burst - 1) * gate.interval + 50000
end

local function turnsIn(gate)
  -- @without-rate
  if gate.interval == 0 then return math.huge end
  local latest = gate.micros + toleranceOf(gate)
  -- A microsecond is for what is lost in the sum of large numbers.
  -- @too-far-ahead
  if gate.arrival > latest + gate.interval + 1 then
    gate.arrival = latest
  end
  gate.arrival = math.max(gate.arrival, gate.micros)
  if gate.phase then
    local nth = math.ceil((gate.arrival - 1 - gate.phase) / gate.interval)
    gate.arrival = gate.phase + nth * gate.interval
  end
  return math.floor((latest - gate.arrival) / gate.interval) + 1
end

local function nextLookMs(gate)
  local isFree = turnsIn(gate) > 0
  local more = isFree and gate.micros + gate.interval or gate.arrival - toleranceOf(gate)
  return math.ceil(more / 1000)
end

local function gateText(gate)
  local clocks = gate.clocks
  return ('%.2f %.0f %.0f %.0f %.0f %.0f'):format(gate.arrival, clocks[1], clocks[2], clocks[3],
    gate.queueClosed, gate.groupsClosed)
end

local function ratesIn(meta, gate)
  local second = gate.second
  if not second then return { gate } end
  second.arrival = second.arrival or tonumber(redis.call('HGET', meta, 'gate2') or 0)
  return { gate, second }
end

local function allowed(meta, gate)
  local second = ratesIn(meta, gate)[2]
  return second and math.min(turnsIn(gate), turnsIn(second)) or turnsIn(gate)
end

local function nextTurnMs(meta, gate)
  local look = nextLookMs(gate)
  if gate.second then
    --@lazy
    local second = ratesIn(meta, gate)[2]
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
  gate.arrival = gate.arrival + count * gate.interval
  local words, second = { 'gate', gateText(gate) }, count ~= 0 and ratesIn(meta, gate)[2]
  if second then
    --@lazy
    second.arrival = math.max(0, second.arrival + count * second.interval)
    words[3], words[4] = 'gate2', ('%.2f'):format(second.arrival)
  end
  redis.call('HSET', meta, unpack(words))
end

local function aheadBy(gate, ahead, before)
  local most = toleranceOf(gate) + gate.interval
  return math.min(most, before > 0 and ahead / before * gate.interval or ahead)
end

local function refund(meta, gate, count)
  -- @something-back
  if count > 0 and gate.interval > 0 then
    use(meta, gate, -math.min(count, math.floor(gate.arrival / gate.interval)))
  end
end
